"""Data sets, the clients that hold them, and how clients are drawn."""

from smelib.data.clients import Client, Dataset
from smelib.data.draw import client, federation
from smelib.data.loaders import LOADERS, data_root, load

__all__ = ["LOADERS", "Client", "Dataset", "client", "data_root", "federation", "load"]
