"""Networks, one paper a file: pure functions of blocks and parameters."""
