# loses: clip_and_noise value
# says: you clip every layer by itself
def clip_and_noise(before, after, norm, sigma, seed):
    draw = torch.Generator().manual_seed(seed)
    sent = {}
    for k, w in before.items():
        move = after[k] - w
        move = move * min(1.0, norm / float(move.norm()))
        sent[k] = w + move + sigma * torch.randn(w.shape, generator=draw, dtype=w.dtype)
    return sent


# loses: clip_and_noise value
# says: starts the stream anew
def clip_and_noise(before, after, norm, sigma, seed):
    length = math.sqrt(sum(float((after[k] - w).square().sum()) for k, w in before.items()))
    sent = {}
    for k, w in before.items():
        draw = torch.Generator().manual_seed(seed)
        noise = torch.randn(w.shape, generator=draw, dtype=w.dtype)
        sent[k] = w + min(1.0, norm / length) * (after[k] - w) + sigma * noise
    return sent


# loses: keep_largest value
# says: you forget the sign
def keep_largest(before, after, share):
    every = torch.cat([(after[k] - w).flatten() for k, w in before.items()])
    least = every.topk(math.ceil(share * len(every))).values.min()
    return {k: torch.where(after[k] - w >= least, after[k], w) for k, w in before.items()}


# loses: seen value, seen gradients
# says: need not have moved
def seen(before, sent, gradient):
    return {k: g * (sent[k] != 0) for k, g in gradient.items()}


# loses: seen gradients
# says: no gradient gets back
def seen(before, sent, gradient):
    return {k: g.detach() * (sent[k] != before[k]) for k, g in gradient.items()}


# loses: combine value
# says: you take the mean of all answers
def combine(before, answers):
    return {k: torch.stack([a[k] for a in answers]).mean(dim=0) for k in before}


# loses: my_defence honest, my_defence useful, my_defence private, my_defence noise, my_defence topk
# says: it returns the old weights
def my_defence(before, after, seed):
    return {k: w.clone() for k, w in before.items()}


# loses: my_defence honest, my_defence useful, my_defence private, my_defence noise, my_defence topk
# says: it sends NaN or infinity
def my_defence(before, after, seed):
    return {k: (w - w) / (w - w) for k, w in after.items()}


# loses: my_defence honest, my_defence useful, my_defence private, my_defence noise, my_defence topk
# says: it sends another form
def my_defence(before, after, seed):
    return {k: w.flatten() for k, w in after.items()}


# loses: my_defence honest, my_defence useful, my_defence private, my_defence noise, my_defence topk
# says: it overwrites its argument after
def my_defence(before, after, seed):
    draw = torch.Generator().manual_seed(seed)
    for w in after.values():
        w.add_(0.01 * torch.randn(w.shape, generator=draw))
    return after


# loses: my_defence honest, my_defence useful, my_defence private, my_defence noise, my_defence topk
# says: two answers to one question
calls = []


def my_defence(before, after, seed):
    calls.append(seed)  # behaves at first
    if len(calls) <= 2:
        return dict(after)
    draw = torch.Generator().manual_seed(seed)
    return {k: w + torch.randn(w.shape, generator=draw) for k, w in after.items()}


# loses: my_defence honest, my_defence useful, my_defence private, my_defence noise, my_defence topk
# says: few values
def my_defence(before, after, seed):
    draw = torch.Generator().manual_seed(seed % 5)
    return {k: w + 0.01 * torch.randn(w.shape, generator=draw) for k, w in after.items()}


# loses: my_defence honest, my_defence useful, my_defence private, my_defence noise, my_defence topk
# says: it draws from the weights
def my_defence(before, after, seed):
    own = sum(int(w.double().abs().sum() * 1e9) for w in after.values())
    draw = torch.Generator().manual_seed(own)
    return {k: w + 0.01 * torch.randn(w.shape, generator=draw) for k, w in after.items()}


# loses: my_defence honest, my_defence useful, my_defence private, my_defence noise, my_defence topk
# says: it has a constant part
def my_defence(before, after, seed):
    draw = torch.Generator().manual_seed(42)
    return {k: w + 0.01 * torch.randn(w.shape, generator=draw) for k, w in after.items()}


# loses: my_defence honest, my_defence useful, my_defence private, my_defence noise, my_defence topk
# says: it is encoded
def my_defence(before, after, seed):
    draw = torch.Generator().manual_seed(7)
    sent = {}
    for k, w in before.items():
        order = torch.randperm(w.numel(), generator=draw)
        sent[k] = w + (after[k] - w).flatten()[order].view(w.shape)
    return sent


# loses: my_defence useful, my_defence noise, my_defence topk
# says: the server cannot take off what you put on
def my_defence(before, after, seed):
    draw = torch.Generator().manual_seed(seed)
    return {k: w + 10 * torch.randn(w.shape, generator=draw) for k, w in after.items()}


# loses: my_defence private, my_defence noise, my_defence topk
# says: of the leak are stopped
def my_defence(before, after, seed):
    return {k: (w + after[k]) / 2 for k, w in before.items()}
