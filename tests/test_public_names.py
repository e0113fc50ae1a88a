import kernelpool


def test_the_public_names_are_sorted_and_there():
    assert kernelpool.__all__ == sorted(kernelpool.__all__)
    for name in kernelpool.__all__:
        assert getattr(kernelpool, name).__doc__
    public = {name for name in vars(kernelpool) if not name.startswith("_")}
    modules = {name for name in public if type(getattr(kernelpool, name)).__name__ == "module"}
    assert public - modules <= set(kernelpool.__all__)
