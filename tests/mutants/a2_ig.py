# loses: angle value, angle gradients
# says: you average the layers' cosines
def angle(u, v):
    parts = [1 - (a * b).sum() / (a.norm() * b.norm()) for a, b in zip(u, v)]
    return torch.stack(parts).mean()


# loses: angle value, angle gradients
# says: yours is the cosine
def angle(u, v):
    a, b = (torch.cat([x.flatten() for x in side]) for side in (u, v))
    return a @ b / (a.norm() * b.norm())


# loses: total_variation value, total_variation gradients
# says: take half of the sum
def total_variation(z):
    return z.diff(dim=-1).abs().mean() + z.diff(dim=-2).abs().mean()


# loses: total_variation value, total_variation gradients
# says: you take sums
def total_variation(z):
    right = (z[:, :, :, 1:] - z[:, :, :, :-1]).abs().sum()
    below = (z[:, :, 1:] - z[:, :, :-1]).abs().sum()
    return right + below


# loses: project value
# says: you clamp to [0, 1]
def project(model, z):
    return z.clamp(0, 1)


# loses: project value
# says: overwrites its argument z
def project(model, z):
    low, high = model.box(z)
    z.copy_(z.maximum(low).minimum(high))
    return z


# loses: ig_loss gradients
# says: only the total variation has a gradient
def ig_loss(model, w0, target, z, labels, tv):
    weights = {k: w.detach().requires_grad_() for k, w in w0.items()}
    error = cross_entropy(functional_call(model.body, weights, (z,)), labels)
    dummy = torch.autograd.grad(error, list(weights.values()), retain_graph=True)
    return angle(target, list(dummy)) + tv * total_variation(z)


# loses: ig_loss value, ig_loss gradients
# says: multiply it by tv
def ig_loss(model, w0, target, z, labels, tv):
    weights = {k: w.detach().requires_grad_() for k, w in w0.items()}
    error = cross_entropy(functional_call(model.body, weights, (z,)), labels)
    dummy = torch.autograd.grad(error, list(weights.values()), create_graph=True)
    return angle(target, list(dummy)) + total_variation(z)


# loses: ig_steps value
# says: IG steps by its sign
def ig_steps(loss, start, steps, lr, box):
    z = start.clone()
    for _ in range(steps):
        z.requires_grad_()
        z = (z - lr * torch.autograd.grad(loss(z), z)[0]).detach().clamp(*box)
    return z


# loses: ig_steps value
# says: you clamp once, at the end
def ig_steps(loss, start, steps, lr, box):
    z = start.clone()
    for _ in range(steps):
        z.requires_grad_()
        z = (z - lr * torch.autograd.grad(loss(z), z)[0].sign()).detach()
    return z.clamp(*box)


# loses: total_variation value, total_variation gradients
# says: you take one mean over all differences
def total_variation(z):
    across, down = z[..., 1:] - z[..., :-1], z[..., 1:, :] - z[..., :-1, :]
    return torch.cat([across.flatten(), down.flatten()]).abs().mean()


# loses: ig_steps value
# says: your gradients add up from step to step, and you take the sum's sign
def ig_steps(loss, start, steps, lr, box):
    z = start.clone().requires_grad_()
    for _ in range(steps):
        loss(z).backward()
        with torch.no_grad():
            z -= lr * z.grad.sign()
            z.clamp_(*box)
    return z.detach()


# loses: ig_steps value
# says: still have a gradient attached
def ig_steps(loss, start, steps, lr, box):
    z = start.clone().requires_grad_()
    for _ in range(steps):
        z.grad = None
        loss(z).backward()
        with torch.no_grad():
            z -= lr * z.grad.sign()
            z.clamp_(*box)
    return z
