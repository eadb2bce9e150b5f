"""Small faults that the tests must notice, module by module: what `make mutants` tries.

A mutant is one change of one place: `old` must occur exactly once in the module's file. `breaks`
says what a reader of the results would suffer. Where no test can tell the mutant from the module,
`equivalent` says why; it still counts as a survivor.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One fault: this text instead of that, and what it breaks."""

    old: str
    new: str
    breaks: str
    equivalent: str = ""


@dataclass(frozen=True)
class Module:
    """A file of smelib, its mutants, and the tests that judge them: the quickest to fail first."""

    file: str
    tests: tuple[str, ...]
    mutants: tuple[Mutant, ...]


SLOW = (
    "tests/test_scoreboard.py::test_the_book_s_own_page_is_what_its_results_give",
    "tests/test_solver.py::test_dlg_recovers_one_image_and_its_label",
    "tests/test_solver.py::test_every_attack_is_compiled_however_many_there_were",
    "tests/test_solver.py::test_an_attack_makes_progress",
    "tests/test_properties.py::test_the_same_seed_gives_the_same_bits[dlg]",
    "tests/test_properties.py::test_idlg_is_right_on_a_thousand_random_cases",
)
"""Good tests that take a core half a minute together, or see any change: a mutant must fall to
another."""

NETWORK, SOLVER = "tests/test_network.py", "tests/test_solver.py"
LABELS, OBJECTIVES = "tests/test_labels.py", "tests/test_objectives.py"
AUDITING, DEFENCES = "tests/test_auditing.py", "tests/test_reproduce_defences.py"
RULE, BOARD, PLAN = (
    "tests/test_verdicts.py",
    "tests/test_scoreboard.py",
    "tests/test_reproduce_plan.py",
)
FEDERATED, PROPERTIES = "tests/test_federated.py", "tests/test_properties.py"
ATTACKS, RETRACE = "tests/test_attacks.py", "tests/test_retrace.py"
METRICS, SCORES = "tests/test_metrics.py", "tests/test_data_and_metrics.py"

MODULES = {
    "objectives": Module(
        "smelib/objectives.py",
        (OBJECTIVES, FEDERATED, SCORES, NETWORK, PROPERTIES, SOLVER, RETRACE),
        (
            Mutant(
                "update.after), 1 / lr))", "update.after), lr))", "DLG's target is lr² too short"
            ),
            Mutant("gap = P.sub(dummy, target)", "gap = P.add(dummy, target)", "DLG seeks -target"),
            Mutant(".softmax(dim=-1) if", ".softmax(dim=0) if", "label logits compete over images"),
            Mutant('aux["logits"].softmax(dim=-1)', 'aux["logits"]', "labels are no probabilities"),
            Mutant(
                "gradient(model, update.before, images, guess)",
                "gradient(model, update.after, images, guess)",
                "DLG matches at wT",
            ),
            Mutant(
                '"similarity": 1 - P.cosine(target, dummy)',
                '"similarity": P.cosine(target, dummy)',
                "DLG reports a cosine as the mismatch",
            ),
            Mutant(
                "direction = model.trained(P.sub(update.before, update.after))",
                "direction = model.trained(P.sub(update.after, update.before))",
                "IG and SME seek the opposite direction",
            ),
            Mutant(
                "direction = model.trained(P.sub(update.before, update.after))",
                "direction = P.sub(update.before, update.after)",
                "frozen layers are matched too",
            ),
            Mutant("similarity + tv * smooth", "similarity + smooth", "tv= is ignored"),
            Mutant(
                "similarity + tv * smooth", "similarity - tv * smooth", "rough images preferred"
            ),
            Mutant("1 - P.cosine(direction", "-P.cosine(direction", "the mismatch begins at -1"),
            Mutant(
                "gradient, model, update.before,",
                "gradient, model, update.after,",
                "IG matches at wT",
            ),
            Mutant(
                "P.sub(model.trained(update.after), start)",
                "P.sub(start, model.trained(update.after))",
                "alpha runs backwards",
            ),
            Mutant(
                'P.add(walker.slope(images, held), part(held, "rest"))',
                "walker.slope(images, held)",
                "retrace forgets the rest of the path",
            ),
            Mutant("* (straight - tv)", "* 0", "SME's prior is forgotten on the segment"),
            Mutant("protocol and protocol.lr", "None", "retrace ignores the known rate"),
            Mutant("if nodes > len(order):", "if False:", "more nodes than steps, unsaid"),
            Mutant('ahead, aux["alpha"])', 'ahead, aux["alpha"].detach())', "alpha never learns"),
            Mutant("{**update.before, **P.add(", "{**P.add(", "SME forgets frozen layers, buffers"),
            Mutant("total, -protocol.lr)", "total, protocol.lr)", "the simulated client climbs"),
            Mutant(
                "enumerate(given, start)", "enumerate(given)", "later segments use early labels"
            ),
            Mutant(
                "epoch_images[torch.cat(",
                "images[0][torch.cat(",
                "the first epoch's dummies always",
            ),
            Mutant(
                "known += labels[torch.cat(epoch)]",
                "known += labels",
                "labels are not shuffled along",
            ),
            Mutant("total = P.add(total, d)", "total = d", "only the last move is matched"),
            Mutant(
                "slope, memory, t, steps)", "slope, memory, t + 1, steps)", "Adam's count is off"
            ),
            Mutant(
                "+ 1 if checkpoint else steps",
                "+ 1 if not checkpoint else steps",
                "checkpoints swapped",
            ),
            Mutant("math.exp(-layers", "math.exp(layers", "the late layers count most"),
            Mutant(
                'layers.index(name.rpartition(".")[0])',
                "list(weights).index(name)",
                "a bias counts as a layer of its own",
            ),
            Mutant(
                "update.after), 1 / protocol.lr",
                "update.after), protocol.lr",
                "DLFA's target is too short",
            ),
            Mutant("(omega[k] if omega else 1.0) * ", "", "DLFA's layer weights are ignored"),
            Mutant("pixels.clamp(0, 1)", "pixels.clamp(-1, 1)", "negative pixels are welcome"),
            Mutant(
                "pixels = model.denormalise(images)", "pixels = images", "the box in wrong units"
            ),
            Mutant(" + clip * outside", "", "clip= is ignored"),
            Mutant(" + order * apart", "", "order= is ignored"),
            Mutant(
                "(last / first) ** (step / until).clamp(max=1)",
                "(last / first) ** 0",
                "DLFA's factor stays at the first value",
            ),
            Mutant("(step / until).clamp(max=1)", "(step / until)", "the factor never arrives"),
            Mutant("now / steps * distance", "now * distance", "the match outweighs the priors"),
            Mutant(
                "(last / steps * distance",
                "(first / steps * distance",
                "keep='best' moves its goal",
            ),
            Mutant(
                "{k: v.detach() for k, v in dummy.items()}",
                "dummy",
                "a slope that nobody asked for",
            ),
            Mutant('"simulated batches"', '"batches"', "DLFA knows the client's batches"),
            Mutant(
                "drawn[e * per_epoch : (e + 1) * per_epoch]",
                "drawn[:per_epoch]",
                "one order for all epochs",
            ),
        ),
    ),
    "walking": Module(
        "smelib/walking.py",
        (RETRACE,),
        (
            Mutant("weights, d, -eta)", "weights, d, eta)", "the walk climbs"),
            Mutant("z[batch], labels[batch])", "z[batch], labels[: len(batch)])", "labels stay"),
            Mutant("memory, t, len(order))", "memory, 0, len(order))", "Adam's count stands still"),
            Mutant("d, memory = move(", "d, _ = move(", "the optimiser forgets"),
            Mutant("slope if full else", "slope if True else", "a batch's gradient for all's"),
            Mutant("nodes.append(weights)", "nodes.append(start)", "every node is w0"),
            Mutant("(v / sloped[k]).sqrt()", "(v / sloped[k])", "the stretch is squared"),
            Mutant(".nan_to_num(1.0, 1.0)", ".nan_to_num(0.0, 0.0)", "plain SGD matches nothing"),
            Mutant("0.5 - (k + 0.5)", "(k + 0.5)", "the segment's nodes lie before it"),
            Mutant("P.scale(target, -1.0)", "P.scale(target, 1.0)", "alpha runs backwards"),
            Mutant(
                "P.sub(path.mean, _stretched(path.slopes, path.stretch))",
                "P.scale(path.mean, 0.0)",
                "nothing is left over: only the nodes count",
            ),
            Mutant(
                "int((k + 0.5) * steps / self.nodes)",
                "int(k * steps / self.nodes)",
                "nodes at the beginning of their stretch",
            ),
            Mutant(
                "far / (steps * P.dot(path.mean, target))",
                "far / P.dot(path.mean, target)",
                "the next walk is T times too long",
            ),
            Mutant(
                "> P.cosine(target, straight_seen)",
                "> -2",
                "a walk that got lost is held all the same",
            ),
            Mutant("torch.where(closer, v, segment[k])", "v", "NaN is held"),
            Mutant(
                'return {**found, "rate": longer.',
                'return {**found, "rate": found["walked"] * longer.',
                "a rate is forgotten where its walk is not held",
            ),
            Mutant("if self.rate is not None:", "if False:", "the known rate is ignored"),
            Mutant("    @torch.no_grad()\n", "", "the walk is differentiated"),
            Mutant("v * stretch[k] for", "v for", "moves of Adam matched with bare gradients"),
            Mutant('"ahead": P.scale(target, 0.0)', '"ahead": target', "alpha shifts the walk"),
        ),
    ),
    "solver": Module(
        "smelib/solver.py",
        (SOLVER, PROPERTIES, RETRACE),
        (
            Mutant("CHECK_EVERY = 25", "CHECK_EVERY = 20", "looks at other steps than it says"),
            Mutant(
                "cls(**{**defaults, **given})",
                "cls(**{**given, **defaults})",
                "steps= is overruled",
            ),
            Mutant(
                "loop.done % CHECK_EVERY == 0 or loop.done == options.steps",
                "loop.done % CHECK_EVERY == 0",
                "nobody looks at the last steps",
            ),
            Mutant("not 0 < self.done < self.recipe.warm", "True", "no warm start"),
            Mutant("stopped = Stop.INTERRUPTED", "stopped = Stop.FINISHED", "Ctrl-C goes unsaid"),
            Mutant(
                '"lr": recipe.rates[k]}',
                '"lr": recipe.rates["images"]}',
                "alpha at the images' rate",
            ),
            Mutant(
                "recipe.schedule(k, options.steps)",
                "recipe.schedule(0, options.steps)",
                "no schedule",
            ),
            Mutant(
                "v.clone().requires_grad_()",
                "v.requires_grad_()",
                "the caller's start is overwritten",
            ),
            Mutant(
                "        self._project()\n        self.safe",
                "        self.safe",
                "the start is outside the box",
            ),
            Mutant(
                "self.schedule.step()\n        self._project()",
                "self.schedule.step()",
                "no step stays in the box",
            ),
            Mutant(
                "k: v.detach().clone() for k, v in self.unknowns",
                "k: v.detach() for k, v in self.unknowns",
                "remembered states move on",
            ),
            Mutant(
                "self.optimiser.zero_grad()",
                "self.optimiser.zero_grad(set_to_none=False)",
                "alpha moves on momentum between its turns",
            ),
            Mutant("every.get(k, 1) == 0}", "every.get(k, 1) == 1}", "alpha's turn comes late"),
            Mutant("v if k in due else v.detach()", "v", "alpha moves at every step"),
            Mutant(
                "if self.noted == self.done:",
                "if True:",
                "L-BFGS notes its last trial, not its state",
            ),
            Mutant("math.inf)\n", "0.0)\n", "keep='best' keeps the start"),
            Mutant(
                "better(score, before, self",
                "better(score, self._state(), self",
                "'best' is one step late",
            ),
            Mutant(
                'self.history.get("score", self.history["loss"])',
                'self.history["loss"]',
                "'best' by a moving goal",
            ),
            Mutant(
                'terms.get("score", loss), last', "loss, last", "the end is judged by a moving goal"
            ),
            Mutant("self.done % self.recipe.renew == 0", "self.done == 0", "a path held for good"),
            Mutant("{**state, **self.held}", "state", "a walk forgets the last one"),
            Mutant("live | self.held", "live", "the loss does not get what is held"),
            Mutant(
                'if k != "images"} | self._renewed(state)',
                'if k != "images"} | self.held',
                "the end is judged by an old path",
            ),
            Mutant("self.clock += 1", "self.clock += 0", "an objective's clock stands still"),
            Mutant(
                "self.done - 2 * CHECK_EVERY", "self.done - CHECK_EVERY", "tolerance= never stops"
            ),
            Mutant(
                ".all(dim=0) & finite(self.unknowns)",
                ".all(dim=0)",
                "a NaN state is stored as good",
            ),
            Mutant(
                "well = torch.isfinite(self.recent()).all(dim=0) & finite",
                "well = finite",
                "a NaN loss is stored as good",
            ),
            Mutant(
                "if not bool(well.any())", "if not bool(well.all())", "one NaN restart ends all"
            ),
            Mutant(
                "choose(well, self.unknowns, self.safe)",
                "choose(well, self.safe, self.unknowns)",
                "the bad state is remembered",
            ),
            Mutant("self.options.tolerance > 0 and", "True and", "a run at rest stops unasked"),
            Mutant(
                " & (stopped is not Stop.DIVERGED)", "", "a diverged run returns its last state"
            ),
            Mutant(
                "choose(unwell, good, last)",
                "choose(unwell, last, good)",
                "the well are put back",
            ),
            Mutant(
                "last = choose(unwell, good, last)\n                loss, terms = at(last)",
                "last = choose(unwell, good, last)",
                "the loss of another state is reported",
            ),
            Mutant(
                "in (self.safe, self.safer):", "in (self.safe,):", "a step over the edge loses all"
            ),
            Mutant(
                "choose(well, self.safe, self.safer)", "self.safe", "a bad restart has no way back"
            ),
            Mutant("if s < self.done]", "if s <= self.done]", "a snapshot of a step not taken"),
            Mutant("v[: self.done].cpu()", "v.cpu()", "the history ends in zeros"),
            Mutant("steps * i // pieces", "steps * i // count", "snapshots crowd at the start"),
            Mutant("(earlier - later <", "(later - earlier <", "a run that improves is stopped"),
            Mutant("< tolerance * earlier.abs())", "< tolerance)", "tolerance= is no share"),
            Mutant(
                "earlier.abs()).all())", "earlier.abs()).any())", "one restart at rest stops all"
            ),
        ),
    ),
    "priors": Module(
        "smelib/priors.py",
        (OBJECTIVES, SCORES, PROPERTIES, SOLVER),
        (
            Mutant("if gap.numel()) / 2", "if gap.numel())", "twice the total variation"),
            Mutant("sum(gap.abs()", "sum(gap.square()", "squared, not absolute, differences"),
            Mutant("z[..., 1:, :] - z[..., :-1, :]", "z[..., 1:] - z[..., :-1]", "no vertical TV"),
            Mutant(" for gap in gaps if gap.numel())", " for gap in gaps)", "NaN in thin images"),
            Mutant("images.mean(dim=1)", "images.mean(dim=0)", "the mean over epochs, not images"),
            Mutant(".amax(dim=1)", ".amin(dim=1)", "the smallest response, not the largest"),
            Mutant(".amax(dim=1)", ".amax(dim=0)", "the largest over epochs, not images"),
            Mutant("bank, padding=1)", "bank)", "features ignore the border"),
            Mutant(
                " / math.sqrt(9 * channels)", "", "features are too large: another prior weight"
            ),
            Mutant("return 2 * apart.mean()", "return apart.mean()", "half the order prior"),
            Mutant(
                "summaries.mean(dim=0))", "summaries.mean())", "an epoch is compared with a number"
            ),
            Mutant("z.roll(1, dims=-1)", "z.roll(1, dims=-2)", "DLFA's TV is vertical only"),
            Mutant(
                "(across + down).sum(dim=(-3, -2, -1)).mean()",
                "(across + down).mean()",
                "DLFA's TV per pixel, not per image",
            ),
        ),
    ),
    "recomputing": Module(
        "smelib/recomputing.py",
        (PROPERTIES, OBJECTIVES),
        (
            Mutant(
                "vjp(ctx.run, *ctx",
                "vjp(lambda *x: x, *ctx",
                "the recomputed slope is the identity's",
            ),
        ),
    ),
    "optimisers": Module(
        "smelib/optimisers.py",
        (SOLVER, PROPERTIES),
        (
            Mutant("sum(step >= steps", "sum(step > steps", "the staircase falls a step late"),
            Mutant("in (3, 5, 7))", "in (2, 4, 6))", "the staircase falls early"),
            Mutant("return 0.1 **", "return 0.5 **", "the staircase halves"),
            Mutant(
                "return (1 + math.cos(math.pi * step / steps)) / 2",
                "return 1.0",
                "no cosine schedule",
            ),
            Mutant("math.pi * step", "2 * math.pi * step", "the cosine comes back up"),
            Mutant("Adam(groups, betas=betas)", "Adam(groups)", "betas are ignored"),
            Mutant(
                "(0.9, 0.999)) -> Optimizer",
                "(0.5, 0.999)) -> Optimizer",
                "another Adam by default",
            ),
            Mutant(
                "for group in groups for p",
                "for group in groups[:1] for p",
                "DLG's labels stay as drawn",
            ),
            Mutant(', line_search_fn="strong_wolfe"', "", "L-BFGS without its line search"),
        ),
    ),
    "restarts": Module(
        "smelib/restarts.py",
        (SOLVER, PROPERTIES),
        (
            Mutant(
                "in_dims=(0, 0, None)", "in_dims=(0, None, None)", "restarts share their unknowns"
            ),
            Mutant(
                ".view(len(v), -1).all(dim=1)",
                ".view(len(v), -1).any(dim=1)",
                "one finite pixel is enough",
            ),
            Mutant(
                "torch.stack(rows).all(dim=0)",
                "torch.stack(rows).any(dim=0)",
                "finite images excuse a NaN alpha",
            ),
            Mutant(
                "won = score < best_score",
                "won = score > best_score",
                "keep='best' keeps the worst",
            ),
            Mutant(
                "won = score < best_score", "won = ~(score > best_score)", "NaN is the best of all"
            ),
        ),
    ),
    "federated": Module(
        "smelib/federated.py",
        (FEDERATED, PROPERTIES, NETWORK),
        (
            Mutant(
                "moving = model.trained(weights)\n\n",
                "moving = weights\n\n",
                "frozen layers have a gradient",
            ),
            Mutant("{**weights, **w}", "{**w, **weights}", "the gradient is zero"),
            Mutant(
                "torch.randperm(samples, generator=generator)",
                "torch.arange(samples)",
                "no shuffle",
            ),
            Mutant(
                "    for _ in range(protocol.epochs):\n"
                "        yield from torch.randperm(samples, generator=generator)",
                "    order = torch.randperm(samples, generator=generator)\n"
                "    for _ in range(protocol.epochs):\n        yield from order",
                "every epoch has the first one's batches",
            ),
            Mutant(
                "torch.zeros_like(v) for k", "torch.ones_like(v) for k", "memories that never were"
            ),
            Mutant('if decay and protocol.optimiser != "adamw"', "if decay", "AdamW decays twice"),
            Mutant(
                'if decay and protocol.optimiser == "adamw"',
                "if False",
                "AdamW does not decay",
            ),
            Mutant(
                'P.add(slope, memory["momentum"], protocol.momentum)',
                'P.add(memory["momentum"], slope, protocol.momentum)',
                "momentum on the wrong one",
            ),
            Mutant("slope[k], 0.1)", "slope[k], 0.9)", "Adam without momentum"),
            Mutant("** 2, 0.001)", "** 2, 0.01)", "Adam forgets its scale"),
            Mutant("slope[k] ** 2,", "slope[k].abs(),", "Adam's scale is no square"),
            Mutant("0.9 ** (step + 1)", "0.9 ** (step + 2)", "Adam's first correction is off"),
            Mutant("0.999 ** (step + 1)", "0.999 ** (step + 2)", "Adam's second correction is off"),
            Mutant(".sqrt() + 1e-8", ".sqrt() + 1e-4", "Adam's small steps are smaller"),
            Mutant(".clamp(min=1e-30)", "", "a dead weight makes DLFA's slope infinite"),
            Mutant(
                "protocol.schedule(step, steps)",
                "protocol.schedule(step + 1, steps)",
                "the schedule is a step early",
            ),
            Mutant(
                "protocol.steps(len(client))",
                "protocol.epochs",
                "the schedule ends with the first batches",
            ),
            Mutant(
                "P.add(moving, d, -protocol.lr)",
                "P.add(moving, d, protocol.lr)",
                "the client climbs",
            ),
            Mutant(
                "weights = model.params() if before is None else before\n    model",
                "weights = model.params()\n    model",
                "every round starts anew",
            ),
            Mutant(
                'seeds.generator(seed, "batches")',
                'seeds.generator(0, "batches")',
                "all clients shuffle alike",
            ),
            Mutant(
                "in enumerate(order):\n        moving",
                "in enumerate(order, 1):\n        moving",
                "the client counts from one",
            ),
            Mutant(
                "first = last if first is None else first", "first = last", "the update is empty"
            ),
            Mutant(
                "return defence(Update(first, last, len(client)), seeds",
                "return none(Update(first, last, len(client)), seeds",
                "no defence",
            ),
            Mutant(
                'seeds.generator(seed, "defence")',
                'seeds.generator(seed, "batches")',
                "the noise shows the batches",
            ),
            Mutant(
                "[u.samples for u in updates]",
                "[1 for u in updates]",
                "a small client counts as much",
            ),
            Mutant("< reporting", "> reporting", "the stragglers report"),
            Mutant(
                "before=weights, defence", "before=before, defence", "no round builds on the last"
            ),
            Mutant(
                ", defence=defence)\n        updates",
                ")\n        updates",
                "rounds without the defence",
            ),
            Mutant('"round", r, i)', '"round", i)', "a client repeats its batches every round"),
            Mutant('"round", r, i)', '"round", r)', "the clients of a round shuffle alike"),
            Mutant(
                "average(updates) if updates else weights",
                "average(updates)",
                "an empty round is an error",
            ),
            Mutant(".argmax(dim=1) for", ".argmin(dim=1) for", "accuracy of the worst guess"),
            Mutant(
                "z = model.normalise(client.images.to(next(iter(weights.values()))))\n    with",
                "z = client.images.to(next(iter(weights.values())))\n    with",
                "accuracy on images the network never saw",
            ),
        ),
    ),
    "labels": Module(
        "smelib/labels.py",
        (LABELS, NETWORK, SCORES),
        (
            Mutant('["bias"].argmin()', '["bias"].argmax()', "iDLG names an absent class"),
            Mutant(
                "if update.samples != 1:", "if update.samples < 1:", "iDLG answers for many samples"
            ),
            Mutant("is not cross_entropy", "is None", "labels read off any loss"),
            Mutant(
                'getattr(model.loss, "func", model.loss)',
                "model.loss",
                "label smoothing is refused",
            ),
            Mutant("    update.check()\n", "", "NaN weights give labels"),
            Mutant("    update = model.own(update)\n", "", "another network's update gives labels"),
            Mutant(
                "update.before[k] - update.after[k]",
                "update.after[k] - update.before[k]",
                "the bias rises",
            ),
            Mutant(
                "if not bool(fall[bias].any())",
                "if not bool(fall[bias].all())",
                "one still class refuses all",
            ),
            Mutant(
                ".softmax(dim=-1).mean(dim=0)", ".softmax(dim=0).mean(dim=0)", "p sums to no one"
            ),
            Mutant(
                "seen[0].sum(dim=-1).mean()",
                "seen[0].mean(dim=-1).mean()",
                "O is a mean, not a sum",
            ),
            Mutant("hook.remove()", "pass", "every call leaves a hook in the network"),
            Mutant(
                "(update.before, update.after))\n    if",
                "(update.after, update.before))\n    if",
                "the segment's ends are swapped",
            ),
            Mutant("p = (p0 + p1) / 2", "p = p0", "blind counts look at w0 only"),
            Mutant("fall > 0 if bool", "fall < 0 if bool", "present classes are taken for absent"),
            Mutant("ratios.median() if", "ratios.max() if", "one outlier sets the factor"),
            Mutant("else ratios.min()", "else ratios.max()", "a count below zero"),
            Mutant(
                "model.classes > n else", "model.classes < n else", "median and minimum are swapped"
            ),
            Mutant(
                "(steps - 1) / (2 * steps)", "1 / 2", "the segment's middle for the mean of t/T"
            ),
            Mutant("torch.lerp(p0, p1, mix)", "p0", "p stands still while the client trains"),
            Mutant("torch.lerp(o0, o1, mix)", "o1", "O at the end only"),
            Mutant("n / (steps * protocol.lr", "n / (protocol.lr", "T gradients taken for one"),
            Mutant('(1 if layer == "bias" else o)', "1", "the rows' activation is dropped"),
            Mutant(
                "n * p - factor * fall", "n * p + factor * fall", "what falls is counted as there"
            ),
            Mutant("n * p - factor * fall", "-factor * fall", "p is dropped"),
            Mutant(".double().clamp(min=0)", ".double()", "negative counts"),
            Mutant(
                "estimate = estimate * (total / estimate.sum())",
                "pass",
                "counts that do not sum to N",
            ),
            Mutant(
                "descending=True, stable=True",
                "descending=False, stable=True",
                "the smallest rests are rounded up",
            ),
            Mutant("estimate.floor().long()", "estimate.ceil().long()", "too many labels"),
            Mutant(
                "counts(model, update, protocol, layer=layer, seed=seed)",
                "counts(model, update, None, layer=layer, seed=seed)",
                "the protocol is ignored",
            ),
            Mutant("protocol, layer=layer, seed", "protocol, seed", "layer= is ignored"),
            Mutant(
                'seeds.generator(seed, "label dummies")',
                'seeds.generator(0, "label dummies")',
                "seed= is ignored",
            ),
            Mutant(
                "(torch.arange(len(found)), found)",
                "(found, torch.arange(len(found)))",
                "counts for labels",
            ),
        ),
    ),
    "network": Module(
        "smelib/models/network.py",
        (NETWORK, FEDERATED, PROPERTIES),
        (
            Mutant("(0.15768,)", "(0.3081,)", "MNIST's standard deviation in FEMNIST's place"),
            Mutant("(0.96424,)", "(0.03576,)", "white is black"),
            Mutant("0.2564, 0.2762)", "0.2762, 0.2564)", "green and blue are swapped"),
            Mutant("F.mse_loss(scores", "F.l1_loss(scores", "absolute instead of squared error"),
            Mutant(
                "F.one_hot(labels, scores",
                "1 - F.one_hot(labels, scores",
                "all classes but the label",
            ),
            Mutant("requires_grad=p.requires_grad", "requires_grad=True", "frozen layers thaw"),
            Mutant(
                "p.detach().to(device, dtype, copy=True)",
                "p.detach().to(device, dtype)",
                "the caller's training goes on in the network",
            ),
            Mutant(
                "b.is_floating_point() else None, copy=True)",
                "b.is_floating_point() else None)",
                "the caller's statistics go on in the network",
            ),
            Mutant(
                "copy.deepcopy(body, memo).eval()", "copy.deepcopy(body, memo)", "dropout stays on"
            ),
            Mutant("(threading.local):", ":", "threads swap each other's weights"),
            Mutant(
                "sdpa_kernel(SDPBackend.MATH)",
                "sdpa_kernel(SDPBackend.FLASH_ATTENTION)",
                "attention without a second derivative",
            ),
            Mutant(
                "named_parameters() if v.requires_grad]",
                "named_parameters()]",
                "frozen layers are matched",
            ),
            Mutant(
                "tuple(getattr(self, f.name) for f in fields(self))",
                "tuple(getattr(self, f.name) for f in fields(self)[:5])",
                "a copy forgets name and loss",
            ),
            Mutant(
                "== (torch.device(device), dtype):",
                "!= (torch.device(device), dtype):",
                "the precision never changes",
            ),
            Mutant(
                "replace(self, body=_copied(self.body, device, dtype))",
                "replace(self, body=_copied(self.body, device, None))",
                "only the device changes",
            ),
            Mutant(
                "v.detach().clone() for k, v in self.body",
                "v.detach() for k, v in self.body",
                "params() hands out the network's own weights",
            ),
            Mutant("if k in self.trainable}", "}", "buffers and frozen layers count as trained"),
            Mutant(
                "self.normalise(images.to(self._mean))",
                "images.to(self._mean)",
                "network(images) without normalisation",
            ),
            Mutant(
                "(images - self._mean.to(images)) /",
                "images - self._mean.to(images) /",
                "a bracket lost",
            ),
            Mutant(
                "z * self._std.to(z) + self._mean.to(z)",
                "z * self._std.to(z) - self._mean.to(z)",
                "not the inverse",
            ),
            Mutant("self.normalise(black + 1)", "self.normalise(black)", "a box without room"),
            Mutant(
                '(f"{layers[-1]}weight", f"{layers[-1]}bias")',
                '(f"{layers[0]}weight", f"{layers[0]}bias")',
                "the first fitting layer is the head",
            ),
            Mutant(" and module.out_features == self.classes", "", "any last layer is the head"),
            Mutant(
                "self.trainable.issuperset(names)",
                "self.trainable.issuperset(names[:1])",
                "a frozen bias is read",
            ),
            Mutant('f"{k}.".lstrip(".")', 'f"{k}."', "a lone linear layer is no head"),
            Mutant(
                "if k in weights or k not in others}",
                "if k in weights}",
                "another network's weights pass",
            ),
            Mutant(
                "        same_layout(given, weights",
                "        (given, weights",
                "missing weights pass",
            ),
            Mutant(
                "in update.before and v.is_floating_point()",
                "in update.before",
                "counters are weights",
            ),
            Mutant(
                "for k in (*weights, *kept)}",
                "for k in update.before if k in {**weights, **kept}}",
                "the file's order of layers",
            ),
            Mutant(
                "for k in (*weights, *kept)}",
                "for k in weights}",
                "the client's statistics are dropped",
            ),
            Mutant("labels.ndim != 1 or ", "", "one-hot labels pass"),
            Mutant("len(labels) != samples or ", "", "too few labels pass"),
            Mutant(
                "or high >= self.classes:",
                "or high > self.classes:",
                "the class after the last passes",
            ),
            Mutant("if low < 0 or high", "if high", "negative labels pass"),
            Mutant("return labels.long()", "return labels", "int32 labels break the loss"),
        ),
    ),
    "wrapping": Module(
        "smelib/models/wrapping.py",
        (NETWORK,),
        (
            Mutant(
                "defaults[1] if std is None",
                "defaults[0] if std is None",
                "the mean for the standard deviation",
            ),
            Mutant("min(std) <= 0", "min(std) < 0", "division by a zero std"),
            Mutant("or len(std) != shape[0] or", "or", "std of another number of channels"),
            Mutant(
                "(copy.deepcopy(body))", "(body)", "the caller's batch norm loses its statistics"
            ),
            Mutant(
                'if batch_norm == "batch":',
                'if batch_norm == "frozen":',
                "frozen and batch are swapped",
            ),
            Mutant("in (1, 3, 4) and", "in (1, 3, 4) or", "every image is height first"),
            Mutant(
                "scores.shape != (2, network.classes)",
                "scores.shape[0] != 2",
                "any number of scores",
            ),
            Mutant("if not bool(slope.any()):", "if False:", "a gradient without the image passes"),
        ),
    ),
    "params": Module(
        "smelib/params.py",
        (PROPERTIES,),
        (
            Mutant("(start[k], end[k], alpha)", "(end[k], start[k], alpha)", "alpha = 0 is not IG"),
            Mutant("(start[k], end[k], alpha)", "(start[k], end[k], -alpha)", "away from wT"),
            Mutant("k: a[k] - b[k]", "k: b[k] - a[k]", "the update is turned round"),
            Mutant("b[k], scale) for", "b[k], -scale) for", "SME looks behind w0"),
            Mutant("alpha=scale)", "alpha=-scale)", "clients climb"),
            Mutant("torch.add(a[k], b[k], alpha=scale)", "a[k]", "the simulation stands still"),
            Mutant("return dot(a, a).sqrt()", "return dot(a, a)", "the cosine is not a cosine"),
            Mutant("(norm(a) * norm(b))", "norm(a)", "the cosine grows with the gradient"),
            Mutant("return dot(a, b) /", "return -dot(a, b) /", "attacks seek the opposite"),
            Mutant("factor * v", "v", "scaling does nothing"),
            Mutant("w / total * item[k]", "item[k] / len(items)", "N does not weigh in FedAvg"),
        ),
    ),
    "pairing": Module(
        "smelib/pairing.py",
        (METRICS,),
        (
            Mutant("torch.cdist(true, found)", "torch.cdist(found, true)", "the order is inverted"),
            Mutant("(cost.numpy())[1]", "(-cost.numpy())[1]", "the worst pairing is taken"),
            Mutant("(cost.numpy())[1]", "(cost.numpy())[0]", "nothing is paired"),
            Mutant("found).square()", "found)", "distances are added up, not squared errors"),
            Mutant(".cpu().double()", ".double().cpu()", "no pairing on a Mac's GPU"),
            Mutant("< len(originals):", "< 0:", "an original without an image goes unnoticed"),
        ),
    ),
    "metrics": Module(
        "smelib/metrics.py",
        (METRICS,),
        (
            Mutant("float(-10 *", "float(-20 *", "twice the decibels"),
            Mutant("float(-10 *", "float(10 *", "a better image has a lower PSNR"),
            Mutant(".mean().log10()", ".sum().log10()", "PSNR falls with the number of pixels"),
            Mutant(".square().mean()", ".abs().mean()", "absolute instead of squared error"),
            Mutant("min(7, *image", "min(5, *image", "SSIM of another window than published"),
            Mutant("if side < 3:", "if side < 2:", "SSIM from a window without variance"),
            Mutant("(side + 1) % 2", "0", "an even window, which SSIM does not have"),
            Mutant("data_range=1.0", "data_range=255.0", "SSIM's constants drown the image"),
            Mutant("channel_axis=0", "channel_axis=2", "columns are taken for channels"),
            Mutant("order = match(images, originals)", "order = range(len(images))", "no pairing"),
            Mutant("(images[i], original) for", "(images[0], original) for", "one image for all"),
            Mutant("float(np.mean(psnrs))", "float(np.max(psnrs))", "the best stands for all"),
            Mutant("float(np.mean(ssims))", "float(np.median(ssims))", "median for mean"),
            Mutant(
                'same_shape(images, originals, "[N, C, H, W]")',
                "same_shape(images, originals)",
                "one image's channels are taken for images",
            ),
            Mutant(".detach().cpu().double()", ".detach().cpu()", "scores in single precision"),
        ),
    ),
    "attacks": Module(
        "smelib/attacks.py",
        (ATTACKS, SOLVER, SCORES),
        (
            Mutant(
                "nan=torch.inf).argmin()",
                "nan=torch.inf).argmax()",
                "the worst restart is returned",
            ),
            Mutant("nan_to_num(nan=torch.inf)", "nan_to_num(nan=-torch.inf)", "a NaN restart wins"),
            Mutant("(solutions[winner], 0)", "(solutions[-1], 0)", "the last restart is returned"),
            Mutant("sum(model.box(images)) / 2", "sum(model.box(images))", "'grey' is not grey"),
            Mutant(
                'seeds.generator(options.seed, "start")',
                'seeds.generator(options.seed, "unknowns")',
                "two streams are one",
            ),
            Mutant(
                "torch.lerp(black, white, v)",
                "torch.lerp(white, black, v)",
                "the box is inside out",
            ),
            Mutant(
                "recipe.finish(z[row])).clamp(0, 1)",
                "recipe.finish(z[row]))",
                "pixels beyond black and white",
            ),
            Mutant(
                'Options.of(options, steps=100, keep="best")',
                "Options.of(options, steps=100)",
                "DLG returns where L-BFGS jumped to",
            ),
            Mutant("    if not lr > 0:", "    if lr < 0:", "DLG divides by a zero learning rate"),
            Mutant("if not 0 <= alpha <= 1:", "if not 0 <= alpha:", "alpha beyond the segment"),
            Mutant(
                "match(epoch, z[0])", "match(z[0], epoch)", "epochs are put in the inverse order"
            ),
            Mutant("torch.stack(aligned).mean(dim=0)", "aligned[0]", "epochs are not averaged"),
            Mutant(
                '"femnist" if model.shape[0] == 1 else "cifar100"',
                '"cifar100" if model.shape[0] == 1 else "femnist"',
                "the settings are swapped",
            ),
            Mutant(
                "chosen.decay ** (k / chosen.every)",
                "chosen.decay ** k",
                "DLFA's rate falls too fast",
            ),
            Mutant("finish=merge_epochs,", "", "DLFA returns all epochs"),
            Mutant(
                "            omega=objectives.layer_weights(update.before),\n",
                "",
                "DLFA's layers count alike",
            ),
        ),
    ),
    "presets": Module(
        "smelib/presets.py",
        (ATTACKS, SOLVER),
        (
            Mutant(
                "1000, staircase, (0.9, 0.999)",
                "1000, staircase, (0.9, 0.99)",
                "not the official Adam",
            ),
            Mutant(
                "0.999), alpha_rate=0.001)",
                "0.999), alpha_rate=0.01)",
                "alpha moves ten times as fast",
            ),
            Mutant(
                'bounds={"images": (0, 1), "alpha": (0, 1)}',
                'bounds={"images": (0, 1)}',
                "alpha leaves the segment",
            ),
            Mutant('every={"alpha": self.alpha_every},', "", "'fast' pays for alpha at every step"),
            Mutant("            grey=self.grey,\n", "", "'fast' starts from noise"),
            Mutant(
                "optimiser=partial(adam, betas=self.betas)",
                "optimiser=adam",
                "a preset's betas are ignored",
            ),
        ),
    ),
    "types": Module(
        "smelib/types.py",
        (NETWORK, FEDERATED, SOLVER, PROPERTIES),
        (
            Mutant(
                "math.ceil(samples / self.batch_size)",
                "samples // self.batch_size",
                "the last batch is forgotten",
            ),
            Mutant(
                "torch.promote_types, kinds, torch.float32)",
                "torch.promote_types, kinds)",
                "half precision stays half",
            ),
            Mutant(
                "if not bool(torch.isfinite(value).all()):",
                "if bool(value.isnan().all()):",
                "NaN weights pass",
            ),
            Mutant(
                "if all(torch.equal(",
                "if any(torch.equal(",
                "one still layer makes the update empty",
            ),
            Mutant("0 <= self.momentum < 1", "0 <= self.momentum <= 1", "momentum 1 never stops"),
            Mutant("self.lr > 0 and", "self.lr >= 0 and", "a client that stands still"),
            Mutant(
                "return Update(before, after, self.samples)",
                "return Update(before, before, self.samples)",
                "moving loses the update",
            ),
            Mutant(
                '        same_layout(self.before, self.after, "before", "after")\n',
                "",
                "two networks' weights pass for an update",
            ),
        ),
    ),
    "seeds": Module(
        "smelib/seeds.py",
        ("tests/test_seeds.py",),
        (
            Mutant(
                "SeedSequence(whole, spawn_key=tuple(key))",
                "SeedSequence(whole)",
                "all purposes share one stream",
            ),
            Mutant(
                "SeedSequence(whole, spawn_key", "SeedSequence(0, spawn_key", "seeds do not matter"
            ),
            Mutant("0 <= whole < 2**63", "whole < 2**63", "a negative seed passes"),
            Mutant(
                "isinstance(part, int) else crc32",
                "isinstance(part, int) else 0 * crc32",
                "names do not matter",
            ),
            Mutant(
                "manual_seed(derive(seed, *purpose))",
                "manual_seed(seed)",
                "noise is a transform of the weights",
            ),
        ),
    ),
    "compiling": Module(
        "smelib/compiling.py",
        (SOLVER,),
        (
            Mutant("loss.sum().backward()", "(-loss).sum().backward()", "attacks climb"),
            Mutant(
                'images.grad = slopes["images"]',
                'images.grad = -slopes["images"]',
                "compiled attacks climb",
            ),
            Mutant('v.grad = slopes["aux"][k]', "v.grad = None", "compiled alpha never moves"),
            Mutant(
                "            compiled = False\n", "", "a failing compiler is asked at every step"
            ),
            Mutant(
                "{**fixed, **unknowns",
                "{**unknowns",
                "compiled attacks lose unknowns between their turns",
            ),
        ),
    ),
    "emnist": Module(
        "smelib/data/vision.py",
        ("tests/test_torchvision_data.py",),
        (
            Mutant(
                "255 - images.transpose(0, 2, 1)",
                "images",
                "letters lie on their side, white on black",
            ),
            Mutant("255 - images.transpose", "images.transpose", "white on black"),
            Mutant(".transpose(0, 2, 1)", "", "letters lie on their side"),
        ),
    ),
    "traces": Module(
        "smelib/auditing/traces.py",
        (AUDITING,),
        (
            Mutant("moved[weight].sum(dim=0)", "moved[weight].sum(dim=1)", "columns, not rows"),
            Mutant("(sums - share * decayed)", "sums", "weight decay looks like noise"),
            Mutant("found.alike > ALIKE:\n            what", "False:\n            what", "no Adam"),
            Mutant("found.still > 0.5", "found.still > 1", "sparsification goes unnamed"),
            Mutant("found.resemblance < RESEMBLES", "False", "any two networks will do"),
            Mutant("and found.rounding < BLURRED", "", "half precision is called quantised"),
            Mutant("found.coarse > COARSE", "found.coarse > 1", "signs go unnoticed"),
            Mutant("< ROUND * scaled", "< 0.3", "any length is round"),
        ),
    ),
    "naming": Module(
        "smelib/auditing/naming.py",
        (AUDITING,),
        (
            Mutant("sorted(given, key=_natural)", "sorted(given)", "layer 10 before layer 2"),
            Mutant("return [everything, floats,", "return [floats, floats,", "no counters"),
            Mutant("ALIASES.get(leaf, leaf)", "leaf", "a kernel is no weight"),
            Mutant("n.removeprefix(prefix)", "n", "prefixes stay"),
        ),
    ),
    "normalising": Module(
        "smelib/auditing/normalising.py",
        (AUDITING,),
        (
            Mutant(" / _used(tried[k].images)", "", "the widest range is taken"),
            Mutant("rate=how.rate / ratio", "rate=how.rate", "steps depend on the units"),
            Mutant("0.01 * ratio", "0.01 / ratio", "smoothing depends on the units"),
        ),
    ),
    "verdict": Module(
        "smelib/auditing/report.py",
        (AUDITING,),
        (
            Mutant("<= RECOVERED and agree", "<= RECOVERED or agree", "agreement is not needed"),
            Mutant("limit = FOREIGN if", "limit = 1.0 if", "agreement on nothing is enough"),
        ),
    ),
    "verdicts": Module(
        "smelib/reproduce/verdicts.py",
        (RULE,),
        (
            Mutant("1 - (1 - CONFIDENCE) / 2", "CONFIDENCE", "90 % intervals are called 95 %"),
            Mutant("np.hypot(self.half, other.half)", "self.half", "the paper's error is dropped"),
            Mutant("np.hypot(self.half, other.half)", "self.half + other.half", "too wide"),
            Mutant("(low > limit) | (high < -limit)", "(low > limit)", "too low is not different"),
            Mutant("(low >= -limit) & (high", "(low >= -limit) | (high", "half inside is equal"),
            Mutant("ddof=1", "ddof=0", "the spread of few clients comes out too small"),
            Mutant(
                "Mean(values.mean(axis=-1), error, n - 1)",
                "Mean(values.mean(axis=-1), error, n)",
                "a client too many",
            ),
            Mutant(
                "self.error / value, self.freedom", "self.error, self.freedom", "no relative error"
            ),
            Mutant("unit / np.sqrt(12)", "0 * unit", "what is printed is taken as exact"),
            Mutant(
                "(limit - truth) / sigma", "limit / sigma", "expected at zero, said of the edge"
            ),
            Mutant(
                "norm.sf(above + half) + norm", "norm.sf(above - half) + norm", "chance is too high"
            ),
            Mutant(
                "chi2.ppf(quantiles, ours.freedom) / ours.freedom",
                "1",
                "a spread that never varies",
            ),
        ),
    ),
    "provenance": Module(
        "smelib/reproduce/provenance.py",
        (BOARD,),
        (
            Mutant("max((TODAY, 1), key", "max((1, TODAY), key", "old clients first"),
            Mutant("max((TODAY, 1), key=clients)", "TODAY", "one new client hides ten of old"),
            Mutant(
                "for x in lines if is_current(x, digests)]",
                "for x in lines if is_current(lines[0], digests)]",
                "a client of another network is taken for this one's",
            ),
        ),
    ),
    "cells": Module(
        "smelib/reproduce/cells.py",
        (BOARD,),
        (
            Mutant(
                "error = error / math.sqrt(verdicts.RUNS)", "pass", "a deviation taken for an error"
            ),
            Mutant(
                'table == "trained" and row.startswith("R1-")',
                "False",
                "restated cells count twice",
            ),
            Mutant(
                'table == "cost" and method != "dlfa"', "False", "a ratio of 1 counts as evidence"
            ),
            Mutant(
                'self.init == "torch" and softmaxes',
                "softmaxes",
                "two readings of one number count",
            ),
            Mutant(
                'return row.dataset, row.samples, line["seed"], provenance.draw(line)',
                'return row.dataset, row.samples, line["seed"], 0',
                "old and new clients are one",
            ),
            Mutant(
                'if self.table == "cost":\n            return verdicts.mean(np.log(self.values))',
                "if False:\n            return verdicts.mean(np.log(self.values))",
                "two kinds of mean on one page",
            ),
            Mutant(
                "np.subtract(self.values, self.guesses)",
                "np.subtract(self.guesses, self.values)",
                "the mean image is the attack",
            ),
            Mutant(
                "if provenance.draw(line) != provenance.TODAY",
                "if False",
                "a guess for a client of another day",
            ),
            Mutant(
                "guesses=() if None in guesses else tuple(guesses)",
                "guesses=tuple(g or 0.0 for g in guesses)",
                "no guess is taken for 0 dB",
            ),
            Mutant(
                "not c.counted, -c.gap", "not c.counted, c.gap", "the smallest difference first"
            ),
        ),
    ),
    "claims": Module(
        "smelib/reproduce/claims.py",
        (BOARD,),
        (
            Mutant(
                "if self.sign * ours.value > ours.half",
                "if self.sign * ours.value > 0",
                "the mean decides",
            ),
            Mutant("> 2 * self.paper.error", "> 0", "every difference of the paper's is a claim"),
            Mutant("against = -self.sign", "against = self.sign", "a loss is undecided"),
            Mutant("FAILS if nothing or", "FAILS if", "no effect is undecided for ever"),
            Mutant("abs(self.paper.value) / 2", "99", "half of the paper's effect is nothing"),
            Mutant("small and abs", "True and abs", "nearly the paper's effect is nothing"),
            Mutant("self._judged(mean) != self.verdict", "False", "a network is no sample"),
            Mutant(
                "held.setdefault(network, []).append(value)",
                "held.setdefault(value, []).append(value)",
                "nine clients of three networks are nine networks",
            ),
            Mutant(
                "said == verdicts.EQUAL and small", "False", "nothing at all is as large as 0.5 dB"
            ),
            Mutant('self.effect.init == "torch" and not single', "True", "a reading counts twice"),
            Mutant(">= verdicts.LOOKS[-1]", "> verdicts.LOOKS[-1]", "ten clients are too few"),
            Mutant(
                "tuple(float(a - b) for a, b in values)",
                "tuple(float(b - a) for a, b in values)",
                "the sign",
            ),
            Mutant(
                "min(planned(*side) for side in sides)",
                "max(planned(*side) for side in sides)",
                "half a pair is run",
            ),
            Mutant("values = np.log(values) if values else []", "pass", "ratios are subtracted"),
            Mutant("if k in less]", "]", "a client with one run is half a pair"),
        ),
    ),
    "plan": Module(
        "smelib/reproduce/plan.py",
        (PLAN, DEFENCES),
        (
            Mutant(
                "return max(fitting, default=0)",
                "return min(fitting, default=0)",
                "the smaller number counts",
            ),
            Mutant("and init in share.inits.split()", "", "both initialisations everywhere"),
            Mutant("{20: 100, 50: 200}", "{20: 100, 50: 100}", "rows share clients"),
            Mutant('kind not in ("none", "samples")', "True", "who knows of no defence is run"),
            Mutant("row.rounds == 1 and kind", "kind", "accuracy is measured once more after R5"),
            Mutant("not in _SUMS[1:]", "not in _SUMS[:0]", "every sum has an accuracy of its own"),
        ),
    ),
    "tradeoff": Module(
        "smelib/reproduce/tradeoff.py",
        (DEFENCES,),
        (
            Mutant(
                'self.runs[s]["psnr"] - self.naive[s]["psnr"]',
                'self.naive[s]["psnr"] - self.runs[s]["psnr"]',
                "the gap is naive minus aware",
            ),
            Mutant("set(self.runs) & set(self.naive)", "self.runs", "half a pair is a pair"),
            Mutant('method.replace("aware", "naive")', "method", "aware is its own naive"),
            Mutant("row.rounds if row.rounds > 1 else 0", "row.rounds", "R0 is called R1"),
            Mutant("2 if defence == ", "2 if value == ", "only a sum of two has an accuracy"),
            Mutant("set(plain) & set(defended)", "defended", "half a pair of federations"),
            Mutant("defended / plain for", "plain / defended for", "what is kept, upside down"),
            Mutant("plain - defended for", "defended - plain for", "a loss is a gain"),
            Mutant("100 * value if words", "value if words", "a hundredth of a per cent"),
        ),
    ),
    "store": Module(
        "smelib/reproduce/store.py",
        ("tests/test_reproduce_store.py", DEFENCES),
        (
            Mutant("exact = measured(table) is not MEASURED", "exact = False", "digits are lost"),
            Mutant("each if name in LISTS else each[0]", "each[0]", "rounds are lost"),
            Mutant("stream.truncate(whole)  # what", "pass  # what", "half a line stays"),
            Mutant("if check != b", "if False and check != b", "half a line is read"),
        ),
    ),
    "checks": Module(
        "smelib/checks/engine.py",
        ("tests/test_checks.py",),
        (
            Mutant("CLOSE = 1e-5", "CLOSE = 1e-1", "small mistakes pass"),
            Mutant("CLOSE = 1e-5", "CLOSE = 1e-30", "rounding fails"),
            Mutant(
                "if max(worst.values()) > CLOSE:\n",
                'if worst[""] > CLOSE:\n',
                "gradients are not compared",
            ),
            Mutant(
                "if all(max(e.values()) < CLOSE for e in errors):",
                "if all(min(e.values()) < CLOSE for e in errors):",
                "a mistake is named for its value alone",
            ),
            Mutant(
                "t.detach().clone()",
                "t.detach()",
                "your function can change the cases",
                equivalent="the reference gets cases of its own",
            ),
            Mutant(
                "cases = self.cases(seed)  #", "cases = [o.given for o in found]  #", "overwriting"
            ),
            Mutant(
                "except NotImplementedError:", "except ZeroDivisionError:", "a stub is an error"
            ),
            Mutant("found.raw is None or ", "", "a stub that returns nothing is told its type"),
            Mutant("        random.setstate(plain)\n", "", "Python's stream moves"),
            Mutant("        np.random.set_state(legacy)\n", "", "NumPy's stream moves"),
            Mutant("torch.random.fork_rng(devices=[]), ", "", "PyTorch's stream moves"),
            Mutant("        torch.set_default_dtype(kind)\n", "", "the precision stays changed"),
            Mutant("torch.enable_grad(), ", "", "under no_grad no gradient is found"),
            Mutant(', torch.device("cpu"):', ":", "cases are drawn on another device"),
            Mutant(
                ".cos().view",
                ".mul(0).add(1).view",
                "a gradient of the plain sum",
            ),
            Mutant(
                "isinstance(found, dict) and found.keys() == right.keys()",
                "isinstance(found, dict)",
                "names are not compared",
            ),
            Mutant("len(found) == len(right)", "True", "a shorter list passes"),
            Mutant("sorted(thing, key=str)", "thing", "the order of names matters"),
            Mutant("a.isfinite() & b.isfinite()", "a.isfinite() | b.isfinite()", "NaN is a number"),
            Mutant("[v.shape for v in found] != [v.shape for v in right]", "False", "shapes"),
            Mutant("lines[-1] - code.co_firstlineno + 1", "lines[-1]", "the line of the file"),
            Mutant('return [f"NotYet: {self}"]', "return []", "the notebook shows nothing"),
            Mutant("print(check.run(yours, seed))", "check.run(yours, seed)", "a silent success"),
            Mutant(
                "print(check.run(yours, seed))",
                "print(check.run(yours))",
                "one seed for all",
            ),
        ),
    ),
    "checks of losses": Module(
        "smelib/checks/losses.py",
        ("tests/test_checks.py",),
        (
            Mutant(
                "[db[order].abs() > 1e-5]\n    return rows[order]",
                "[db[order].abs() > 1e-1]\n    return rows[order]",
                "quiet units are left out",
            ),
            Mutant("    lr = 0.1\n", "    lr = 0.1\n    w0 = P.scale(w0, 1.01)\n", "another w0"),
            Mutant(
                "return 1 - P.cosine(dict(enumerate(u)), dict(enumerate(v)))\n",
                "return 2 - P.cosine(dict(enumerate(u)), dict(enumerate(v)))\n",
                "angle is off by one",
            ),
            Mutant("return z.clamp(*model.box(z))", "return z.clamp(-2, 2)", "another box"),
            Mutant('{"alpha": alpha}, NOW', '{"alpha": 1 - alpha}, NOW', "the other end is right"),
            Mutant("P.lerp(update.before, update.after, -alpha)", "update.before", "a sentence"),
        ),
    ),
    "checks of training": Module(
        "smelib/checks/training.py",
        ("tests/test_checks.py",),
        (
            Mutant("seed=seed, before=w0).after", "seed=seed).after", "w0 is not used"),
            Mutant("0.3 * normal(s.draw", "0.0 * normal(s.draw", "w0 is the network's own"),
            Mutant("path[0 if still else -1]", "path[0]", "all gradients at w0"),
            Mutant("len(order[0][0]), lr)", "len(order[0][0]), 2 * lr)", "another learning rate"),
            Mutant("1.2 * normal", "0.01 * normal", "any matching matches"),
            Mutant("keep=[moves // 2]", "keep=[moves // 2 - 1]", "the middle is early"),
            Mutant("z.new_ones(())", "z.new_zeros(())", "TV weighs as on the segment"),
        ),
    ),
    "checks of measures": Module(
        "smelib/checks/measures.py",
        ("tests/test_checks.py",),
        (
            Mutant("[alpha])[0])", "[0.0])[0])", "alpha is ignored"),
            Mutant(
                "return theory.plane_ratios(stack @ stack.T)\n",
                "return 1.0 - stack[:, 0]\n",
                "no plane",
            ),
            Mutant("(taken - 1) / (2 * taken)", "0.5", "the softmax half-way"),
            Mutant("keep: bool = True", "keep: bool = False", "a sentence"),
            Mutant("uniform(draw, 16 + k) - 0.8", "uniform(draw, 16 + k)", "none is negative"),
        ),
    ),
    "defences": Module(
        "smelib/defences/sending.py",
        ("tests/test_defences.py",),
        (
            Mutant("if length > norm else move", "if length < norm else move", "short ones grow"),
            Mutant("norm / length", "length / norm", "clipping lengthens"),
            Mutant(
                "v.double() for k, v in move.items()",
                "v.double() ** 2 for k, v in move.items()",
                "no norm",
            ),
            Mutant(
                "v + sigma * torch.randn", "v + sigma**2 * torch.randn", "noise of the variance"
            ),
            Mutant(
                "torch.randn(v.shape, generator=generator",
                "torch.rand(v.shape, generator=generator",
                "uniform",
            ),
            Mutant("every.abs().topk", "every.topk", "what fell most is not sent"),
            Mutant("every * (len(every) / count)", "every * 1.0", "random_k shrinks the mean"),
            Mutant(
                "torch.randperm(len(every), generator=generator)",
                "torch.arange(len(every))",
                "the first weights",
            ),
            Mutant(
                "chance < place - place.floor()",
                "place - place.floor() > 0.5",
                "the nearest, biased",
            ),
            Mutant(
                "chance < place - place.floor()",
                "chance > place - place.floor()",
                "the wrong neighbour",
            ),
            Mutant("steps = 2**bits - 1", "steps = 2**bits", "one value too many"),
            Mutant("cell = 2 * largest", "cell = largest", "a grid of half the width"),
            Mutant("v.sign() * v.abs().mean()", "v.sign()", "every layer moves by 1"),
            Mutant(
                "torch.where(v == move[k], new[k].to(v), wide[k] + v)", "(wide[k] + v)", "rounding"
            ),
            Mutant("math.ceil(share * weights)", "int(share * weights)", "one weight fewer"),
            Mutant("if not 0 < share <= 1", "if not 0 < share", "a share above 1"),
            Mutant("if v.is_floating_point()}", "}", "counters are defended"),
            Mutant("bits >= 32", "bits >= 320", "32 bits round"),
        ),
    ),
    "defences' seam": Module(
        "smelib/defences/seam.py",
        ("tests/test_defences.py",),
        (
            Mutant(
                "for defence in defences:", "for defence in reversed(defences):", "from the right"
            ),
            Mutant(
                "update = defence(update, generator)",
                "defence(update, generator)",
                "nothing is done",
            ),
            Mutant("if not callable(defence)", "if False", "a number is a defence"),
        ),
    ),
    "accounting": Module(
        "smelib/defences/accounting.py",
        ("tests/test_defences.py",),
        (
            Mutant("mu = 2 * norm", "mu = norm", "the neighbour is no client at all"),
            Mutant("math.sqrt(rounds) / sigma", "rounds / sigma", "rounds add up without a root"),
            Mutant("- below - delta", "- delta", "a bound that is not tight"),
            Mutant("-mu / 2 - epsilon / mu)", "mu / 2 - epsilon / mu)", "the other tail"),
            Mutant("return 0.0", "return delta", "no privacy lost is some"),
            Mutant("math.sqrt(steps) / noise", "steps / noise", "steps add up without a root"),
            Mutant(
                "generator.random(draws) < taken",
                "generator.random(draws) > taken",
                "who is in a batch",
            ),
            Mutant("ratios(0.0), 1 - prior", "ratios(0.0), prior", "the least likely events"),
            Mutant(
                "(2 * x - 1)",
                "(2 * x + 1)",
                "another likelihood ratio",
            ),
        ),
    ),
    "masking": Module(
        "smelib/defences/masking.py",
        ("tests/test_secure_sum.py",),
        (
            Mutant("mask if client < other else -mask", "mask", "the masks add up"),
            Mutant("if other != client:", "if True:", "a mask with oneself cancels with nobody"),
            Mutant(
                "min(client, other), max(client, other)", "client, other", "no two share a mask"
            ),
            Mutant("self._pairs(client, dropped, total)", "0", "a dropout leaves its masks"),
            Mutant("total = total - self._mask(total, client)", "pass", "own masks stay"),
            Mutant("own = self._ring(own + self._mask(update, client))", "pass", "no own mask"),
            Mutant("* update.samples * 2.0", "* 2.0", "N does not weigh"),
            Mutant(
                "2.0**self.fraction * samples", "2.0**self.fraction", "the sum and not the mean"
            ),
            Mutant("self._ring(numbers + half) - half", "numbers", "negative numbers are large"),
            Mutant("if len(messages) < self.least", "if False", "one client alone is revealed"),
            Mutant("(self.modulus - 1) / self.clients", "(self.modulus - 1)", "a sum may wrap"),
            Mutant('"masks", *who)', '"masks")', "one mask for all"),
            Mutant(
                "torch.randint(1 << self.modulus,",
                "torch.randint(1 << self.fraction,",
                "no uniform",
            ),
            Mutant("if i not in dropped}", "}", "nobody drops out"),
        ),
    ),
    "dp-sgd": Module(
        "smelib/defences/training.py",
        ("tests/test_dp_sgd.py",),
        (
            Mutant(
                "value.copy_(weights[name])",
                "pass",
                "before= is ignored",
            ),
            Mutant("copy.deepcopy(model.body)", "model.body", "the network is trained"),
            Mutant("noise_multiplier=noise", "noise_multiplier=2 * noise", "twice the noise"),
            Mutant("max_grad_norm=norm", "max_grad_norm=1.0", "another norm"),
            Mutant(
                'noise_generator=seeds.generator(seed, "defence")',
                "noise_generator=None",
                "no seed",
            ),
            Mutant(
                "model.loss(private(images), labels)",
                "(2 * model.loss(private(images), labels))",
                "twice",
            ),
            Mutant("momentum=protocol.momentum", "momentum=0.0", "no momentum"),
            Mutant("protocol.schedule(min(t, steps - 1), steps)", "1.0", "no schedule"),
            Mutant("[(noise, rate, steps)]", "[(noise, rate, steps + 1)]", "one step more"),
            Mutant(
                "if noise else math.inf\n    trained",
                "if noise else 0.0\n    trained",
                "no noise is perfect privacy",
            ),
            Mutant("strict=False):", "strict=False) and False:", "batch norm mixes samples"),
        ),
    ),
    "aware": Module(
        "smelib/aware.py",
        ("tests/test_aware.py",),
        (
            Mutant(
                "v != update.before[k].to(v)", "v == update.before[k].to(v)", "the unsent weights"
            ),
            Mutant("torch.tanh(v / typical)", "v / typical", "no signs"),
            Mutant("update.after, factor)", "update.after, 1 / factor)", "shorter"),
            Mutant(
                "seen(gradient(model, weights, images, labels))",
                "gradient(model, weights, images, labels)",
                "SME compares what was not sent",
            ),
            Mutant("return seen(moved[0] if", "return (moved[0] if", "retrace, what was not sent"),
            Mutant(
                "P.add(start, ahead, aux[name])", 'P.add(start, ahead, aux["alpha"])', "one alpha"
            ),
            Mutant("P.mean(moved, sizes)", "P.mean(moved, [1] * len(sizes))", "N does not weigh"),
            Mutant(
                "(1 - walked) * (straight - tv)", "walked * (straight - tv)", "TV the wrong way"
            ),
            Mutant("longest * recipe.rates", "0 * recipe.rates", "alpha stays"),
            Mutant("(0, longest)", "(0, 2 * longest)", "alpha goes too far"),
            Mutant("sum(value for value, _ in found)", "found[0][0]", "one round counts"),
            Mutant('{f"client {i} {k}"', '{f"client 0 {k}"', "one walk for all"),
            Mutant("protocol and protocol.lr", "None", "the clipped length again"),
            Mutant("moves.sum(dim=0) / times", "moves.sum(dim=0)", "no mean"),
            Mutant("moves.sum(dim=0) / times", "moves.mean(dim=0)", "what was not sent counts"),
        ),
    ),
}
