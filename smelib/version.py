"""The one place where the version stands."""

__version__ = "0.1.0"
REPOSITORY = "https://github.com/sme-book/sme-book"  # written by `make repository`
