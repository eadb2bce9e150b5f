# loses: surrogate value, surrogate gradients
# says: from the other end
def surrogate(update, alpha):
    return {k: alpha * w + (1 - alpha) * update.after[k] for k, w in update.before.items()}


# loses: surrogate gradients
# says: alpha has no gradient
def surrogate(update, alpha):
    a = float(alpha)
    return {k: w + a * (update.after[k] - w) for k, w in update.before.items()}


# loses: sme_loss value, sme_loss gradients
# says: you compare with wT - w0
def sme_loss(model, update, labels, z, alpha, tv=0.01):
    w = surrogate(update, alpha)
    g = grad(lambda w: cross_entropy(functional_call(model.body, w, (z,)), labels))(w)
    a = torch.cat([(update.after[k] - update.before[k]).flatten() for k in g])
    b = torch.cat([v.flatten() for v in g.values()])
    smooth = (z.diff(dim=-1).abs().mean() + z.diff(dim=-2).abs().mean()) / 2
    return 1 - a @ b / (a.norm() * b.norm()) + tv * smooth


# loses: sme_loss value, sme_loss gradients
# says: your total variation is twice ours
def sme_loss(model, update, labels, z, alpha, tv=0.01):
    w = surrogate(update, alpha)
    g = grad(lambda w: cross_entropy(functional_call(model.body, w, (z,)), labels))(w)
    a = torch.cat([(update.before[k] - update.after[k]).flatten() for k in g])
    b = torch.cat([v.flatten() for v in g.values()])
    smooth = z.diff(dim=-1).abs().mean() + z.diff(dim=-2).abs().mean()
    return 1 - a @ b / (a.norm() * b.norm()) + tv * smooth


# loses: sme_loss gradients
# says: alpha has no gradient
def sme_loss(model, update, labels, z, alpha, tv=0.01):
    w = {k: v.detach() for k, v in surrogate(update, alpha).items()}
    g = grad(lambda w: cross_entropy(functional_call(model.body, w, (z,)), labels))(w)
    a = torch.cat([(update.before[k] - update.after[k]).flatten() for k in g])
    b = torch.cat([v.flatten() for v in g.values()])
    smooth = (z.diff(dim=-1).abs().mean() + z.diff(dim=-2).abs().mean()) / 2
    return 1 - a @ b / (a.norm() * b.norm()) + tv * smooth


# loses: alpha_slope value
# says: your sign is wrong
def alpha_slope(model, update, labels, z, alpha):
    w = {k: v.detach().requires_grad_() for k, v in surrogate(update, alpha).items()}
    m = sme_loss(model, update, labels, z, 0.0, tv=0.0) * 0 + _mismatch(model, update, labels, z, w)
    slopes = torch.autograd.grad(m, list(w.values()))
    return sum((s * (update.before[k] - update.after[k])).sum() for k, s in zip(w, slopes))


def _mismatch(model, update, labels, z, w):
    error = cross_entropy(functional_call(model.body, w, (z,)), labels)
    g = torch.autograd.grad(error, list(w.values()), create_graph=True)
    a = torch.cat([(update.before[k] - update.after[k]).flatten() for k in w])
    b = torch.cat([v.flatten() for v in g])
    return 1 - a @ b / (a.norm() * b.norm())


# loses: alpha_slope value
# says: a second derivative
def alpha_slope(model, update, labels, z, alpha):
    w = {k: v.detach().requires_grad_() for k, v in surrogate(update, alpha).items()}
    error = cross_entropy(functional_call(model.body, w, (z,)), labels)
    g = torch.autograd.grad(error, list(w.values()))
    return sum((s * (update.after[k] - update.before[k])).sum() for k, s in zip(w, g))


# loses: alpha_slope value
# says: smelib.objectives is closed here
def alpha_slope(model, update, labels, z, alpha):
    alpha = alpha.clone().requires_grad_()
    loss = smelib.objectives.sme(model, update, labels, tv=0.0)(z, {"alpha": alpha}, None)[0]
    return torch.autograd.grad(loss, alpha)[0]


# loses: sme_steps value
# says: your alpha leaves [0, 1]
def sme_steps(loss, start, alpha, steps, lr, lr_alpha, box):
    z, a = start.clone(), alpha.clone()
    for _ in range(steps):
        z.requires_grad_(), a.requires_grad_()
        dz, da = torch.autograd.grad(loss(z, a), (z, a))
        z, a = (z - lr * dz).detach().clamp(*box), (a - lr_alpha * da).detach()
    return z, a


# loses: sme_steps value
# says: take both gradients at the same point
def sme_steps(loss, start, alpha, steps, lr, lr_alpha, box):
    z, a = start.clone(), alpha.clone()
    for _ in range(steps):
        z.requires_grad_()
        z = (z - lr * torch.autograd.grad(loss(z, a), z)[0]).detach().clamp(*box)
        a.requires_grad_()
        a = (a - lr_alpha * torch.autograd.grad(loss(z, a), a)[0]).detach().clamp(0, 1)
    return z, a


# loses: sme_loss value, sme_loss gradients
# says: your total variation is one mean over all differences
def sme_loss(model, update, labels, z, alpha, tv=0.01):
    w = surrogate(update, alpha)
    g = grad(lambda w: cross_entropy(functional_call(model.body, w, (z,)), labels))(w)
    a = torch.cat([(update.before[k] - update.after[k]).flatten() for k in g])
    b = torch.cat([v.flatten() for v in g.values()])
    smooth = torch.cat([z.diff(dim=-1).flatten(), z.diff(dim=-2).flatten()]).abs().mean()
    return 1 - a @ b / (a.norm() * b.norm()) + tv * smooth


# loses: sme_steps value
# says: zero both, the images' and alpha's
def sme_steps(loss, start, alpha, steps, lr, lr_alpha, box):
    z, a = start.clone().requires_grad_(), alpha.clone().requires_grad_()
    for _ in range(steps):
        loss(z, a).backward()
        with torch.no_grad():
            z -= lr * z.grad
            a -= lr_alpha * a.grad
            z.clamp_(*box), a.clamp_(0, 1)
    return z.detach(), a.detach()


# loses: sme_steps value
# says: zero alpha.grad like the images'
def sme_steps(loss, start, alpha, steps, lr, lr_alpha, box):
    z, a = start.clone().requires_grad_(), alpha.clone().requires_grad_()
    for _ in range(steps):
        z.grad = None
        loss(z, a).backward()
        with torch.no_grad():
            z -= lr * z.grad
            a -= lr_alpha * a.grad
            z.clamp_(*box), a.clamp_(0, 1)
    return z.detach(), a.detach()


# loses: sme_steps value
# says: still have a gradient attached
def sme_steps(loss, start, alpha, steps, lr, lr_alpha, box):
    z, a = start.clone().requires_grad_(), alpha.clone().requires_grad_()
    for _ in range(steps):
        dz, da = torch.autograd.grad(loss(z, a), (z, a))
        z = (z - lr * dz).clamp(*box).detach().requires_grad_()
        a = (a - lr_alpha * da).clamp(0, 1).detach().requires_grad_()
    return z, a
