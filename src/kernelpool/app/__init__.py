"""The application: model files, ONNX, reports and the command line."""
