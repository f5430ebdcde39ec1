"""Images: distances, dithering, filters, components, seams, flows."""

from __future__ import annotations

from typing import Any

import numpy as np

import lapwing as lw


def picture(n: int, m: int, seed: int) -> np.ndarray:
    """Grey values between 0 and 1: a disc, a ramp and noise."""
    x, y = np.mgrid[:n, :m]
    disc = (x - n / 2) ** 2 + (y - m / 2) ** 2 < (n / 4) ** 2
    return np.clip(0.5 * disc + 0.4 * y / m + 0.1 * np.random.default_rng(seed).random((n, m)), 0.0, 1.0)


@lw.nest
def chamfer(d):
    """The 3-4 chamfer distance transform: a pass down, a pass up, the border left alone.

    Source: G. Borgefors, "Distance transformations in digital images", CVGIP 34 (1986).
    Uses: two nests of opposite directions, min of five, integers in place.
    """
    n, m = d.shape
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            d[i, j] = min(d[i, j], d[i - 1, j - 1] + 4, d[i - 1, j] + 3, d[i - 1, j + 1] + 4, d[i, j - 1] + 3)
    for i in range(n - 2, 0, -1):
        for j in range(m - 2, 0, -1):
            d[i, j] = min(d[i, j], d[i + 1, j + 1] + 4, d[i + 1, j] + 3, d[i + 1, j - 1] + 4, d[i, j + 1] + 3)


@chamfer.problem
def chamfer_problem(n: int = 36) -> dict[str, Any]:
    return {"d": np.where(np.random.default_rng(81).random((n, n)) < 0.03, 0, 9999).astype(np.int32)}


@lw.nest
def floyd_steinberg(image):
    """Error diffusion to black and white: each error is spread over four neighbours that come later.

    Source: R. W. Floyd, L. Steinberg, "An adaptive algorithm for spatial grey scale", Proc. SID 17 (1976).
    Uses: writes at five offsets, guards at the edges, a conditional expression, += on neighbours.
    """
    height, width = image.shape
    for y in range(height):
        for x in range(width):
            old = image[y, x]
            new = 255.0 if old > 127.0 else 0.0
            image[y, x] = new
            error = old - new
            if x + 1 < width:
                image[y, x + 1] += error * 7 / 16
            if y + 1 < height:
                if x > 0:
                    image[y + 1, x - 1] += error * 3 / 16
                image[y + 1, x] += error * 5 / 16
                if x + 1 < width:
                    image[y + 1, x + 1] += error * 1 / 16


@floyd_steinberg.problem
def floyd_steinberg_problem(n: int = 32) -> dict[str, Any]:
    return {"image": 255.0 * picture(n, n + 4, 82)}


@lw.nest
def box_filter(image, integral, out, r):
    """An integral image, then the mean of a window from its four corners, cut off at the edges.

    Source: P. Viola, M. Jones, "Rapid object detection using a boosted cascade of simple features", CVPR 2001.
    Uses: a running sum along rows, uint8 into int64, reads at max and min of indices, integer division, two nests.
    """
    n, m = image.shape
    for i in range(n):
        row = 0
        for j in range(m):
            row += image[i, j]
            integral[i + 1, j + 1] = integral[i, j + 1] + row
    for i in range(n):
        for j in range(m):
            top, bottom = max(i - r, 0), min(i + r + 1, n)
            left, right = max(j - r, 0), min(j + r + 1, m)
            total = integral[bottom, right] - integral[top, right] - integral[bottom, left] + integral[top, left]
            out[i, j] = total // ((bottom - top) * (right - left))


@box_filter.problem
def box_filter_problem(n: int = 32, r: int = 2) -> dict[str, Any]:
    image = (255 * picture(n, n + 3, 83)).astype(np.int64)
    return {"image": image, "integral": np.zeros((n + 1, n + 4), np.int64), "out": np.zeros((n, n + 3), int), "r": r}


@lw.nest
def recursive_gaussian(image, b1, b2, b3, B):
    """A Gaussian by a recursive filter of third order, forward and back along rows, then along columns.

    Source: I. T. Young, L. J. van Vliet, "Recursive implementation of the Gaussian filter", Signal Processing 44
      (1995).
    Uses: recurrences over three elements in both directions of both axes, the ends by max and min of indices, in place.
    """
    n, m = image.shape
    for i in range(n):
        for j in range(m):
            w1, w2, w3 = image[i, max(j - 1, 0)], image[i, max(j - 2, 0)], image[i, max(j - 3, 0)]
            image[i, j] = B * image[i, j] + b1 * w1 + b2 * w2 + b3 * w3
        for j in range(m - 1, -1, -1):
            w1, w2, w3 = image[i, min(j + 1, m - 1)], image[i, min(j + 2, m - 1)], image[i, min(j + 3, m - 1)]
            image[i, j] = B * image[i, j] + b1 * w1 + b2 * w2 + b3 * w3
    for j in range(m):
        for i in range(n):
            w1, w2, w3 = image[max(i - 1, 0), j], image[max(i - 2, 0), j], image[max(i - 3, 0), j]
            image[i, j] = B * image[i, j] + b1 * w1 + b2 * w2 + b3 * w3
        for i in range(n - 1, -1, -1):
            w1, w2, w3 = image[min(i + 1, n - 1), j], image[min(i + 2, n - 1), j], image[min(i + 3, n - 1), j]
            image[i, j] = B * image[i, j] + b1 * w1 + b2 * w2 + b3 * w3


@recursive_gaussian.problem
def recursive_gaussian_problem(n: int = 32, sigma: float = 2.0) -> dict[str, Any]:
    q = 0.98711 * sigma - 0.9633
    b0 = 1.57825 + 2.44413 * q + 1.4281 * q**2 + 0.422205 * q**3
    b1 = (2.44413 * q + 2.85619 * q**2 + 1.26661 * q**3) / b0
    b2, b3 = -(1.4281 * q**2 + 1.26661 * q**3) / b0, 0.422205 * q**3 / b0
    return {"image": picture(n, n + 4, 84), "b1": b1, "b2": b2, "b3": b3, "B": 1 - b1 - b2 - b3}


@lw.nest
def deriche(img, y1, y2, out, a1, a2, b1, b2):
    """A smoothing filter of second order with state in scalars, causal and anticausal passes added, float32.

    Source: R. Deriche, "Recursively implementing the Gaussian and its derivatives" (1993); PolyBench/C 4.2,
      medley/deriche.
    Uses: scalars carried along a row and shifted, descending loops, six nests, float32.
    """
    w, h = img.shape
    for i in range(w):
        ym1, ym2, xm1 = np.float32(0), np.float32(0), np.float32(0)
        for j in range(h):
            y1[i, j] = a1 * img[i, j] + a2 * xm1 + b1 * ym1 + b2 * ym2
            xm1 = img[i, j]
            ym2 = ym1
            ym1 = y1[i, j]
    for i in range(w):
        yp1, yp2, xp1, xp2 = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
        for j in range(h - 1, -1, -1):
            y2[i, j] = a2 * xp1 + a1 * xp2 + b1 * yp1 + b2 * yp2
            xp2 = xp1
            xp1 = img[i, j]
            yp2 = yp1
            yp1 = y2[i, j]
    for i in range(w):
        for j in range(h):
            out[i, j] = y1[i, j] + y2[i, j]
    for j in range(h):
        ym1, ym2, xm1 = np.float32(0), np.float32(0), np.float32(0)
        for i in range(w):
            y1[i, j] = a1 * out[i, j] + a2 * xm1 + b1 * ym1 + b2 * ym2
            xm1 = out[i, j]
            ym2 = ym1
            ym1 = y1[i, j]
    for j in range(h):
        yp1, yp2, xp1, xp2 = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
        for i in range(w - 1, -1, -1):
            y2[i, j] = a2 * xp1 + a1 * xp2 + b1 * yp1 + b2 * yp2
            xp2 = xp1
            xp1 = out[i, j]
            yp2 = yp1
            yp1 = y2[i, j]
    for i in range(w):
        for j in range(h):
            out[i, j] = y1[i, j] + y2[i, j]


@deriche.problem
def deriche_problem(n: int = 28) -> dict[str, Any]:
    img = picture(n, n + 4, 85).astype(np.float32)
    work = {"y1": np.zeros_like(img), "y2": np.zeros_like(img), "out": np.zeros_like(img)}
    return {"img": img, **work, "a1": 0.19, "a2": 0.12, "b1": 1.21, "b2": -0.37}


@lw.nest
def bilateral(image, out, radius, sigma_s, sigma_r):
    """The bilateral filter: weights by distance and by difference of grey values, neighbours outside left out.

    Source: C. Tomasi, R. Manduchi, "Bilateral filtering for gray and color images", ICCV 1998.
    Uses: two inner loops over a window with accumulators, a guard by a chained comparison, np.exp.
    """
    n, m = image.shape
    for i in range(n):
        for j in range(m):
            total = 0.0
            norm = 0.0
            for di in range(-radius, radius + 1):
                for dj in range(-radius, radius + 1):
                    if 0 <= i + di < n and 0 <= j + dj < m:
                        difference = image[i + di, j + dj] - image[i, j]
                        w = np.exp(-(di**2 + dj**2) / (2 * sigma_s**2) - difference**2 / (2 * sigma_r**2))
                        total += w * image[i + di, j + dj]
                        norm += w
            out[i, j] = total / norm


@bilateral.problem
def bilateral_problem(n: int = 20, radius: int = 2) -> dict[str, Any]:
    image = picture(n, n + 2, 86)
    return {"image": image, "out": np.zeros_like(image), "radius": radius, "sigma_s": 1.5, "sigma_r": 0.2}


@lw.nest
def median_3x3(image, out):
    """The median of nine by insertion into a small sorted array.

    Source: T. Huang, G. Yang, G. Tang, "A fast two-dimensional median filtering algorithm", IEEE Trans. ASSP 27
      (1979): the direct way.
    Uses: a work array of nine filled in each cell, a while loop of two conditions inside, uint8, an index counted up.
    """
    n, m = image.shape
    window = np.zeros(9, dtype=image.dtype)
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            count = 0
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    value = image[i + di, j + dj]
                    k = count
                    while k > 0 and window[k - 1] > value:
                        window[k] = window[k - 1]
                        k -= 1
                    window[k] = value
                    count += 1
            out[i, j] = window[4]


@median_3x3.problem
def median_3x3_problem(n: int = 28) -> dict[str, Any]:
    image = (255 * picture(n, n, 87)).astype(np.uint8)
    return {"image": image, "out": image.copy()}


@lw.nest
def canny_edges(image, magnitude, direction, edges, low, high):
    """Sobel gradients, maxima across the edge kept, then hysteresis until no weak point joins.

    Source: J. Canny, "A computational approach to edge detection", IEEE Trans. PAMI 8 (1986).
    Uses: three stages, if/elif chains on a direction, np.hypot and abs, while on a flag, any of eight neighbours, a
      count.
    """
    n, m = image.shape
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            gx = image[i - 1, j + 1] + 2 * image[i, j + 1] + image[i + 1, j + 1]
            gx -= image[i - 1, j - 1] + 2 * image[i, j - 1] + image[i + 1, j - 1]
            gy = image[i + 1, j - 1] + 2 * image[i + 1, j] + image[i + 1, j + 1]
            gy -= image[i - 1, j - 1] + 2 * image[i - 1, j] + image[i - 1, j + 1]
            magnitude[i, j] = np.sqrt(gx * gx + gy * gy)
            if abs(gy) <= 0.4142 * abs(gx):
                direction[i, j] = 0
            elif abs(gy) >= 2.4142 * abs(gx):
                direction[i, j] = 2
            elif gx * gy > 0:
                direction[i, j] = 1
            else:
                direction[i, j] = 3
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            if direction[i, j] == 0:
                a, b = magnitude[i, j - 1], magnitude[i, j + 1]
            elif direction[i, j] == 1:
                a, b = magnitude[i - 1, j - 1], magnitude[i + 1, j + 1]
            elif direction[i, j] == 2:
                a, b = magnitude[i - 1, j], magnitude[i + 1, j]
            else:
                a, b = magnitude[i - 1, j + 1], magnitude[i + 1, j - 1]
            if magnitude[i, j] < a or magnitude[i, j] < b:
                edges[i, j] = 0
            elif magnitude[i, j] >= high:
                edges[i, j] = 2
            elif magnitude[i, j] >= low:
                edges[i, j] = 1
    changed = True
    while changed:
        changed = False
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                if edges[i, j] != 1:
                    continue
                strong = False
                for di in range(-1, 2):
                    for dj in range(-1, 2):
                        if edges[i + di, j + dj] == 2:
                            strong = True
                if strong:
                    edges[i, j] = 2
                    changed = True
    count = 0
    for i in range(n):
        for j in range(m):
            if edges[i, j] == 2:
                count += 1
            else:
                edges[i, j] = 0
    return count


@canny_edges.problem
def canny_edges_problem(n: int = 24) -> dict[str, Any]:
    image = picture(n, n + 2, 88)
    bytes_ = {"direction": np.zeros(image.shape, np.uint8), "edges": np.zeros(image.shape, np.uint8)}
    return {"image": image, "magnitude": np.zeros_like(image), **bytes_, "low": 0.5, "high": 1.2}


@lw.nest
def connected_components(mask, labels):
    """Labels by scans in both directions, each taking the least label around it, until nothing changes; then
    renumbered.

    Source: A. Rosenfeld, J. L. Pfaltz, "Sequential operations in digital picture processing", J. ACM 13 (1966).
    Uses: a first numbering by a running count, while not done, guards by a mask, minima by if, a relabelling table.
    """
    n, m = mask.shape
    next_label = 0
    for i in range(n):
        for j in range(m):
            if mask[i, j]:
                next_label += 1
                labels[i, j] = next_label
            else:
                labels[i, j] = 0
    done = False
    while not done:
        done = True
        for i in range(n):
            for j in range(m):
                if mask[i, j]:
                    least = labels[i, j]
                    if i > 0 and mask[i - 1, j] and labels[i - 1, j] < least:
                        least = labels[i - 1, j]
                    if j > 0 and mask[i, j - 1] and labels[i, j - 1] < least:
                        least = labels[i, j - 1]
                    if least < labels[i, j]:
                        labels[i, j] = least
                        done = False
        for i in range(n - 1, -1, -1):
            for j in range(m - 1, -1, -1):
                if mask[i, j]:
                    least = labels[i, j]
                    if i < n - 1 and mask[i + 1, j] and labels[i + 1, j] < least:
                        least = labels[i + 1, j]
                    if j < m - 1 and mask[i, j + 1] and labels[i, j + 1] < least:
                        least = labels[i, j + 1]
                    if least < labels[i, j]:
                        labels[i, j] = least
                        done = False
    renumbered = np.zeros(next_label + 1, dtype=int)
    components = 0
    for i in range(n):
        for j in range(m):
            k = labels[i, j]
            if k > 0:
                if renumbered[k] == 0:
                    components += 1
                    renumbered[k] = components
                labels[i, j] = renumbered[k]
    return components


@connected_components.problem
def connected_components_problem(n: int = 26) -> dict[str, Any]:
    mask = np.random.default_rng(89).random((n, n)) < 0.55
    return {"mask": mask, "labels": np.zeros((n, n), int)}


@lw.nest
def perona_malik(image, kappa, lam, steps):
    """Anisotropic diffusion with fluxes that fade across edges.

    Source: P. Perona, J. Malik, "Scale-space and edge detection using anisotropic diffusion", IEEE Trans. PAMI 12
      (1990).
    Uses: a helper function with np.exp, copies each step, reflecting edges by conditional expressions in an index.
    """
    n, m = image.shape
    for step in range(steps):
        old = image.copy()
        for i in range(n):
            for j in range(m):
                north = old[i - 1 if i > 0 else 0, j] - old[i, j]
                south = old[i + 1 if i < n - 1 else i, j] - old[i, j]
                west = old[i, j - 1 if j > 0 else 0] - old[i, j]
                east = old[i, j + 1 if j < m - 1 else j] - old[i, j]
                image[i, j] += lam * (
                    conductance(north, kappa) * north
                    + conductance(south, kappa) * south
                    + conductance(west, kappa) * west
                    + conductance(east, kappa) * east
                )


def conductance(difference, kappa):
    return np.exp(-((difference / kappa) ** 2))


@perona_malik.problem
def perona_malik_problem(n: int = 22, steps: int = 4) -> dict[str, Any]:
    return {"image": picture(n, n, 90), "kappa": 0.15, "lam": 0.2, "steps": steps}


@lw.nest
def horn_schunck(Ex, Ey, Et, u, v, alpha, iterations):
    """Optical flow by Jacobi steps on weighted means of the flow around each point.

    Source: B. K. P. Horn, B. G. Schunck, "Determining optical flow", Artif. Intell. 17 (1981).
    Uses: two coupled fields, copies of both, ** 2 of a scalar and of elements, a helper that reads eight neighbours.
    """
    n, m = u.shape
    for k in range(iterations):
        u_old, v_old = u.copy(), v.copy()
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                ub = local_mean(u_old, i, j)
                vb = local_mean(v_old, i, j)
                t = Ex[i, j] * ub + Ey[i, j] * vb + Et[i, j]
                t = t / (alpha**2 + Ex[i, j] ** 2 + Ey[i, j] ** 2)
                u[i, j] = ub - Ex[i, j] * t
                v[i, j] = vb - Ey[i, j] * t


def local_mean(w, i, j):
    cross = w[i - 1, j] + w[i, j + 1] + w[i + 1, j] + w[i, j - 1]
    corners = w[i - 1, j - 1] + w[i - 1, j + 1] + w[i + 1, j + 1] + w[i + 1, j - 1]
    return cross / 6 + corners / 12


@horn_schunck.problem
def horn_schunck_problem(n: int = 20, iterations: int = 6) -> dict[str, Any]:
    Ex, Ey, Et = np.random.default_rng(91).standard_normal((3, n, n))
    return {
        "Ex": Ex,
        "Ey": Ey,
        "Et": Et,
        "u": np.zeros((n, n)),
        "v": np.zeros((n, n)),
        "alpha": 1.0,
        "iterations": iterations,
    }


@lw.nest
def seam(energy, cost, path):
    """The vertical seam of least energy: costs row by row, then the way back up.

    Source: S. Avidan, A. Shamir, "Seam carving for content-aware image resizing", ACM Trans. Graphics 26 (2007).
    Uses: first row apart, edges by if/elif/else, argmin of a row, a descending walk whose column is carried.
    """
    n, m = energy.shape
    for j in range(m):
        cost[0, j] = energy[0, j]
    for i in range(1, n):
        for j in range(m):
            if j == 0:
                best = min(cost[i - 1, j], cost[i - 1, j + 1])
            elif j == m - 1:
                best = min(cost[i - 1, j - 1], cost[i - 1, j])
            else:
                best = min(cost[i - 1, j - 1], cost[i - 1, j], cost[i - 1, j + 1])
            cost[i, j] = energy[i, j] + best
    column = 0
    for j in range(1, m):
        if cost[n - 1, j] < cost[n - 1, column]:
            column = j
    path[n - 1] = column
    for i in range(n - 2, -1, -1):
        best = column
        for j in range(max(column - 1, 0), min(column + 2, m)):
            if cost[i, j] < cost[i, best]:
                best = j
        column = best
        path[i] = column
    return cost[n - 1, path[n - 1]]


@seam.problem
def seam_problem(n: int = 40, m: int = 36) -> dict[str, Any]:
    return {"energy": picture(n, m, 92), "cost": np.zeros((n, m)), "path": np.zeros(n, int)}


@lw.nest
def haar(image, levels):
    """The Haar transform in place, level by level, along rows and then along columns.

    Source: S. Mallat, "A Wavelet Tour of Signal Processing" (2009), section 7.7; E. J. Stollnitz et al., IEEE CG&A
      15 (1995).
    Uses: a size halved each level, indices 2*j and half + j, a work row copied back, np.sqrt of a constant.
    """
    n = image.shape[0]
    work = np.zeros(n)
    size = n
    for level in range(levels):
        half = size // 2
        for i in range(size):
            for j in range(half):
                work[j] = (image[i, 2 * j] + image[i, 2 * j + 1]) / np.sqrt(2.0)
                work[half + j] = (image[i, 2 * j] - image[i, 2 * j + 1]) / np.sqrt(2.0)
            for j in range(size):
                image[i, j] = work[j]
        for j in range(size):
            for i in range(half):
                work[i] = (image[2 * i, j] + image[2 * i + 1, j]) / np.sqrt(2.0)
                work[half + i] = (image[2 * i, j] - image[2 * i + 1, j]) / np.sqrt(2.0)
            for i in range(size):
                image[i, j] = work[i]
        size = half


@haar.problem
def haar_problem(n: int = 32, levels: int = 3) -> dict[str, Any]:
    return {"image": picture(n, n, 93), "levels": levels}


@lw.nest
def summed_area(image, s):
    """The summed area table by its recurrence.

    Source: F. C. Crow, "Summed-area tables for texture mapping", SIGGRAPH 1984.
    Uses: one nest, three neighbours.
    """
    for i in range(1, s.shape[0]):
        for j in range(1, s.shape[1]):
            s[i, j] = image[i - 1, j - 1] + s[i - 1, j] + s[i, j - 1] - s[i - 1, j - 1]


@summed_area.problem
def summed_area_problem(n: int = 48) -> dict[str, Any]:
    image = picture(n, n + 4, 94)
    return {"image": image, "s": np.zeros((n + 1, n + 5))}


@lw.nest
def sobel(image, out, threshold):
    """Sobel's gradient against a threshold, and the strongest response.

    Source: R. O. Duda, P. E. Hart, "Pattern Classification and Scene Analysis" (1973), section 7.3.
    Uses: 3 x 3 tables looked up in inner loops, two accumulators, a conditional expression, a maximum returned.
    """
    kx = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    strongest = 0.0
    for y in range(1, image.shape[0] - 1):
        for x in range(1, image.shape[1] - 1):
            gx = gy = 0.0
            for a in range(3):
                for b in range(3):
                    gx += kx[a, b] * image[y + a - 1, x + b - 1]
                    gy += kx[b, a] * image[y + a - 1, x + b - 1]
            g = abs(gx) + abs(gy)
            out[y, x] = 1 if g > threshold else 0
            strongest = max(strongest, g)
    return strongest


@sobel.problem
def sobel_problem(n: int = 26) -> dict[str, Any]:
    return {"image": picture(n, n + 2, 95), "out": np.zeros((n, n + 2), np.uint8), "threshold": 1.0}
