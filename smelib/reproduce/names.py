"""What a page calls the tables' rows, methods and first weights."""

from __future__ import annotations

from smelib.reproduce.plan import REBALANCED, ROWS

METHODS = {"ig": "IG", "sme": "SME", "dlfa": "DLFA", "retrace": "retrace", "path": "path"}
METHODS[REBALANCED] = "DLFA, rebalanced"
WEIGHTS = {"torch": "PyTorch's", "lecun": "LeCun's"}
DATA = {"femnist": "FEMNIST", "cifar100": "CIFAR-100", "mnist": "MNIST", "photos": "photographs"}
NETWORKS = {
    "mlp": "MLP",
    "lenet": "LeNet",
    "lenet_slow": "LeNet at rate 0.004",
    "lenet_softmax": "LeNet with two softmaxes",
    "lenet_softmax_slow": "LeNet with two softmaxes at rate 0.004",
    "resnet8": "ResNet8",
    "resnet8_batch": "ResNet8 with its batch's statistics",
    "resnet8_data": "ResNet8 with the data's statistics",
    "vit": "ViT",
}


def row(table: str, key: str) -> str:
    """A row in words, like `FEMNIST after 5 rounds, E = 10, N = 50`."""
    setting = ROWS[table][key]
    after = f" after {setting.rounds} rounds" if setting.rounds > 1 else ""
    size = f"B = {setting.batch_size}" if table == "low_rank" else f"N = {setting.samples}"
    labels = ", labels recovered" if setting.recovered else ""
    return f"{_who(table, key)}{after}, E = {setting.epochs}, {size}{labels}"


def short(table: str, key: str) -> str:
    """The same where there is little room, like `R5 E10 N50`."""
    setting = ROWS[table][key]
    who = f"R{setting.rounds}" if setting.rounds > 1 else _who(table, key)
    return f"{who} E{setting.epochs} N{setting.samples}"


def _who(table: str, key: str) -> str:
    """Whose images, or in the table of architectures which network, for its images are FEMNIST."""
    if table == "architectures":
        return NETWORKS[key.partition("-")[0]]
    return DATA[ROWS[table][key].dataset]
