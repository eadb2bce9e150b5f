"""Draw the README's picture: ten digits, and what SME rebuilds of them.

python benchmarks/picture.py
"""

from pathlib import Path

import smelib

client = smelib.data.client("mnist", samples=10, seed=0, distinct_labels=True)
model = smelib.models.cnn(client.shape, client.classes)
update = smelib.local_update(model, client, smelib.Protocol(epochs=10, batch_size=10))
stolen = smelib.attacks.sme(model, update, client.labels)
score = smelib.evaluate(stolen.images, client.images)
print(score)
figure = smelib.viz.compare(client.images, {"stolen": stolen.images})
target = Path(__file__).resolve().parents[1] / "book" / "_static" / "reconstruction.png"
figure.savefig(target, dpi=130)
print(f"wrote {target.name}")
