"""Hidden Markov models, filters, and the prices of options."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import lapwing as lw


def model(states: int, symbols: int, steps: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    A, B, pi = rng.random((states, states)), rng.random((states, symbols)), rng.random(states)
    rows = {"A": A / A.sum(1, keepdims=True), "B": B / B.sum(1, keepdims=True), "pi": pi / pi.sum()}
    return {**rows, "obs": rng.integers(0, symbols, steps)}


@lw.nest
def hmm_forward(alpha, c, A, B, pi, obs):
    """The scaled forward recursion of a hidden Markov model and the log-likelihood.

    Source: L. R. Rabiner, "A tutorial on hidden Markov models", Proc. IEEE 77 (1989), sections III.A and V.A.
    Uses: the whole row of the step before read, inner accumulators, a sum over the row that divides it, np.log,
      several nests a step.
    """
    T = len(obs)
    n = len(pi)
    c[0] = 0.0
    for i in range(n):
        alpha[0, i] = pi[i] * B[i, obs[0]]
        c[0] += alpha[0, i]
    for i in range(n):
        alpha[0, i] /= c[0]
    for t in range(1, T):
        c[t] = 0.0
        for j in range(n):
            s = 0.0
            for i in range(n):
                s += alpha[t - 1, i] * A[i, j]
            alpha[t, j] = s * B[j, obs[t]]
            c[t] += alpha[t, j]
        for j in range(n):
            alpha[t, j] /= c[t]
    log_likelihood = 0.0
    for t in range(T):
        log_likelihood += np.log(c[t])
    return log_likelihood


@hmm_forward.problem
def hmm_forward_problem(states: int = 8, steps: int = 40) -> dict[str, Any]:
    return {"alpha": np.zeros((steps, states)), "c": np.zeros(steps), **model(states, 5, steps, 71)}


@lw.nest
def viterbi(delta, psi, path, logA, logB, logpi, obs):
    """The likeliest path of states, in logarithms, and the walk back along it.

    Source: L. R. Rabiner, "A tutorial on hidden Markov models", Proc. IEEE 77 (1989), section III.B.
    Uses: an argmax by if inside each cell, the whole row of the step before, a descending walk through indices read
      from an array.
    """
    T, n = delta.shape
    for i in range(n):
        delta[0, i] = logpi[i] + logB[i, obs[0]]
        psi[0, i] = 0
    for t in range(1, T):
        for j in range(n):
            best = delta[t - 1, 0] + logA[0, j]
            arg = 0
            for i in range(1, n):
                score = delta[t - 1, i] + logA[i, j]
                if score > best:
                    best = score
                    arg = i
            delta[t, j] = best + logB[j, obs[t]]
            psi[t, j] = arg
    last = 0
    for i in range(n):
        if delta[T - 1, i] > delta[T - 1, last]:
            last = i
    path[T - 1] = last
    for t in range(T - 2, -1, -1):
        path[t] = psi[t + 1, path[t + 1]]
    return delta[T - 1, last]


@viterbi.problem
def viterbi_problem(states: int = 8, steps: int = 40) -> dict[str, Any]:
    m = model(states, 5, steps, 72)
    logs = {"logA": np.log(m["A"]), "logB": np.log(m["B"]), "logpi": np.log(m["pi"]), "obs": m["obs"]}
    tables = {"delta": np.zeros((steps, states)), "psi": np.zeros((steps, states), int), "path": np.zeros(steps, int)}
    return {**tables, **logs}


@lw.nest
def kalman(z, x, P, dt, q, r):
    """A Kalman filter for position and speed, the 2 x 2 algebra written out; the last state returned.

    Source: R. E. Kalman (1960); P. Zarchan, H. Musoff, "Fundamentals of Kalman Filtering" (AIAA, 2009), chapter 4.
    Uses: scalars carried from step to step, tuple assignment, rows of states and covariances written, no
      independent loop at all.
    """
    x0, x1 = z[0], 0.0
    p00, p01, p11 = 1.0, 0.0, 1.0
    log_likelihood = 0.0
    for k in range(len(z)):
        x0 = x0 + dt * x1
        p00, p01, p11 = (
            p00 + dt * (2 * p01 + dt * p11) + q * dt**3 / 3,
            p01 + dt * p11 + q * dt**2 / 2,
            p11 + q * dt,
        )
        innovation = z[k] - x0
        s = p00 + r
        k0, k1 = p00 / s, p01 / s
        x0, x1 = x0 + k0 * innovation, x1 + k1 * innovation
        p00, p01, p11 = (1 - k0) * p00, (1 - k0) * p01, p11 - k1 * p01
        x[k, 0], x[k, 1] = x0, x1
        P[k, 0, 0], P[k, 0, 1], P[k, 1, 0], P[k, 1, 1] = p00, p01, p01, p11
        log_likelihood -= 0.5 * (math.log(2 * math.pi * s) + innovation**2 / s)
    return x0, x1, log_likelihood


@kalman.problem
def kalman_problem(n: int = 100) -> dict[str, Any]:
    z = np.cumsum(np.random.default_rng(73).standard_normal(n))
    return {"z": z, "x": np.zeros((n, 2)), "P": np.zeros((n, 2, 2)), "dt": 0.5, "q": 0.1, "r": 0.8}


@lw.nest
def kalman_many(z, x, P, F, Q, r):
    """Many independent Kalman filters of four states, the matrix products by loops.

    Source: R. Faragher, "Understanding the basis of the Kalman filter", IEEE Signal Proc. Mag. 29 (2012).
    Uses: 4 x 4 products in each cell with small work arrays made inside, a time loop inside an independent one.
    """
    tracks, steps = z.shape
    n = F.shape[0]
    xp = np.zeros(n)
    FP = np.zeros((n, n))
    Pp = np.zeros((n, n))
    for track in range(tracks):
        for k in range(steps):
            for i in range(n):
                xp[i] = 0.0
                for j in range(n):
                    xp[i] += F[i, j] * x[track, j]
            for i in range(n):
                for j in range(n):
                    FP[i, j] = 0.0
                    for m in range(n):
                        FP[i, j] += F[i, m] * P[track, m, j]
            for i in range(n):
                for j in range(n):
                    Pp[i, j] = Q[i, j]
                    for m in range(n):
                        Pp[i, j] += FP[i, m] * F[j, m]
            s = Pp[0, 0] + r
            innovation = z[track, k] - xp[0]
            for i in range(n):
                x[track, i] = xp[i] + Pp[i, 0] / s * innovation
                for j in range(n):
                    P[track, i, j] = Pp[i, j] - Pp[i, 0] * Pp[0, j] / s


@kalman_many.problem
def kalman_many_problem(tracks: int = 6, steps: int = 12) -> dict[str, Any]:
    n = 4
    F = np.eye(n) + np.diag([0.1] * (n - 1), 1)
    P = np.tile(np.eye(n), (tracks, 1, 1))
    z = np.random.default_rng(74).standard_normal((tracks, steps))
    return {"z": z, "x": np.zeros((tracks, n)), "P": P, "F": F, "Q": 0.01 * np.eye(n), "r": 0.5}


@lw.nest
def binomial_american(V, S0, K, r, sigma, T, steps):
    """An American put on a binomial tree, one vector overwritten from expiry to today.

    Source: J. C. Cox, S. A. Ross, M. Rubinstein, "Option pricing: a simplified approach", J. Financ. Econ. 7 (1979).
    Uses: a descending outer loop, bounds that shrink with it, powers of a float with integer exponents, in place,
      V[0] returned.
    """
    dt = T / steps
    u = math.exp(sigma * math.sqrt(dt))
    d = 1 / u
    p = (math.exp(r * dt) - d) / (u - d)
    discount = math.exp(-r * dt)
    for j in range(steps + 1):
        V[j] = max(K - S0 * u**j * d ** (steps - j), 0.0)
    for i in range(steps - 1, -1, -1):
        for j in range(i + 1):
            hold = discount * (p * V[j + 1] + (1 - p) * V[j])
            V[j] = max(hold, K - S0 * u**j * d ** (i - j))
    return V[0]


@binomial_american.problem
def binomial_american_problem(steps: int = 100) -> dict[str, Any]:
    return {"V": np.zeros(steps + 1), "S0": 100.0, "K": 105.0, "r": 0.05, "sigma": 0.3, "T": 1.0, "steps": steps}


@lw.nest
def american_put_psor(V, payoff, sigma, r, dt, omega, tol, steps):
    """An American put by Crank-Nicolson, the inequality in each step solved by projected SOR.

    Source: P. Wilmott, S. Howison, J. Dewynne, "The Mathematics of Financial Derivatives" (1995), section 9.4.
    Uses: while inside a time loop, coefficients from the index, max with an obstacle, an error that is a float sum.
    """
    M = len(V) - 1
    rhs = np.zeros(M + 1)
    loops = 0
    for step in range(steps):
        for i in range(1, M):
            a = 0.25 * dt * (sigma**2 * i**2 - r * i)
            b = -0.5 * dt * (sigma**2 * i**2 + r)
            c = 0.25 * dt * (sigma**2 * i**2 + r * i)
            rhs[i] = a * V[i - 1] + (1 + b) * V[i] + c * V[i + 1]
        error = 2 * tol
        while error > tol:
            error = 0.0
            for i in range(1, M):
                a = 0.25 * dt * (sigma**2 * i**2 - r * i)
                b = -0.5 * dt * (sigma**2 * i**2 + r)
                c = 0.25 * dt * (sigma**2 * i**2 + r * i)
                y = (rhs[i] + a * V[i - 1] + c * V[i + 1]) / (1 - b)
                y = max(payoff[i], V[i] + omega * (y - V[i]))
                error += (y - V[i]) ** 2
                V[i] = y
            loops += 1
    return loops


@american_put_psor.problem
def american_put_psor_problem(M: int = 50, steps: int = 10) -> dict[str, Any]:
    payoff = np.maximum(50.0 - 2.0 * np.arange(M + 1), 0.0)
    rest = {"sigma": 0.3, "r": 0.05, "dt": 1 / 12, "omega": 1.2, "tol": 1e-6, "steps": steps}
    return {"V": payoff.copy(), "payoff": payoff, **rest}


@lw.nest
def european_call_grid(V, S, K, r, sigma, dt):
    """A European call by explicit differences on a grid of time by price, all of it kept.

    Source: P. Wilmott, "Paul Wilmott on Quantitative Finance" (2006), chapter 77.
    Uses: two-dimensional table over time and space, boundary values with np.exp of the step, delta and gamma as
      temporaries.
    """
    n_s, n_t = V.shape
    dS = S[1] - S[0]
    for i in range(n_s):
        V[i, 0] = max(S[i] - K, 0.0)
    for k in range(1, n_t):
        for i in range(1, n_s - 1):
            delta = (V[i + 1, k - 1] - V[i - 1, k - 1]) / (2 * dS)
            gamma = (V[i + 1, k - 1] - 2 * V[i, k - 1] + V[i - 1, k - 1]) / dS**2
            theta = -0.5 * sigma**2 * S[i] ** 2 * gamma - r * S[i] * delta + r * V[i, k - 1]
            V[i, k] = V[i, k - 1] - dt * theta
        V[0, k] = 0.0
        V[n_s - 1, k] = S[n_s - 1] - K * np.exp(-r * k * dt)


@european_call_grid.problem
def european_call_grid_problem(n_s: int = 41, n_t: int = 60) -> dict[str, Any]:
    S = np.linspace(0.0, 200.0, n_s)
    return {"V": np.zeros((n_s, n_t)), "S": S, "K": 100.0, "r": 0.05, "sigma": 0.2, "dt": 0.01}
