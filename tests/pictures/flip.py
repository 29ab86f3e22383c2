"""The difference of two pictures as a person sees it, and the reading and writing of pictures; takes numpy and ffmpeg.

FLIP for pictures of low dynamic range: Andersson, Nilsson, Akenine-Moeller, Oskarsson, Astroem and Fairchild, "FLIP: A Difference Evaluator
for Alternating Images", 2020, with its constants, at 67 pixels per degree. 0: no visible difference, 1: the largest one.
"""
import subprocess

import numpy as np

PIXELS_PER_DEGREE = 67.02
COLOUR_EXPONENT, LARGE_FROM, LARGE_TO = 0.7, 0.4, 0.95
FEATURE_WIDTH, FEATURE_EXPONENT = 0.082, 0.5
WHITE = np.array([0.950428545, 1.0, 1.088900371])   # D65
TO_XYZ = np.array([[10135552 / 24577794, 8788810 / 24577794, 4435075 / 24577794],
                   [2613072 / 12288897, 8788810 / 12288897, 887015 / 12288897],
                   [1425312 / 73733382, 8788810 / 73733382, 70074185 / 73733382]])


def read(path, size=None):
    """f64[rows, columns, 4], sRGB, 0 to 1; scaled to `size` (columns, rows) if it is given."""
    scale = ["-vf", f"scale={size[0]}:{size[1]}:flags=area"] if size else []
    probe = subprocess.run(["ffprobe", "-loglevel", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0", path],
                           capture_output=True, text=True, check=True, timeout=60).stdout.split(",")
    columns, rows = size or (int(probe[0]), int(probe[1]))
    raw = subprocess.run(["ffmpeg", "-loglevel", "error", "-i", path, *scale, "-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "rgba", "-"],
                         capture_output=True, check=True, timeout=60).stdout
    return np.frombuffer(raw, np.uint8).reshape(rows, columns, 4) / 255.0


def write(path, picture, *options):
    """`picture`: f64[rows, columns, 3], sRGB. `options`: of ffmpeg's encoder."""
    rows, columns, _ = picture.shape
    raw = np.rint(np.clip(picture, 0, 1) * 255).astype(np.uint8).tobytes()
    subprocess.run(["ffmpeg", "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{columns}x{rows}", "-i", "-", *options, path],
                   input=raw, check=True, timeout=120)


def linear(srgb):
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def opponent(xyz):
    """XYZ, relative to white, as the opponent space YCxCz."""
    x, y, z = np.moveaxis(xyz / WHITE, -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], -1)


def xyz_of_opponent(c):
    y = (c[..., 0] + 16) / 116
    return np.stack([y + c[..., 1] / 500, y, y - c[..., 2] / 200], -1) * WHITE


def lab(xyz):
    limit = (6 / 29) ** 3
    ratio = xyz / WHITE
    f = np.where(ratio > limit, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.stack([116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])], -1)


def hunt(c):
    """The colourfulness of dark colours is smaller."""
    return np.stack([c[..., 0], 0.01 * c[..., 0] * c[..., 1], 0.01 * c[..., 0] * c[..., 2]], -1)


def hyab(a, b):
    d = a - b
    return np.abs(d[..., 0]) + np.hypot(d[..., 1], d[..., 2])


def filtered(plane, kernel):
    """The correlation with a kernel of odd sides; the border pixels continue outside."""
    ry, rx = kernel.shape[0] // 2, kernel.shape[1] // 2
    padded = np.pad(plane, ((ry, ry), (rx, rx)), "edge")
    shape = padded.shape
    product = np.fft.irfft2(np.fft.rfft2(padded) * np.conj(np.fft.rfft2(kernel, shape)), shape)
    return product[:plane.shape[0], :plane.shape[1]]


def contrast_filter(a1, b1, a2, b2):
    radius = int(np.ceil(3 * np.sqrt(0.04 / (2 * np.pi ** 2)) * PIXELS_PER_DEGREE))
    x = np.arange(-radius, radius + 1) / PIXELS_PER_DEGREE
    square = x[None, :] ** 2 + x[:, None] ** 2
    g = sum(a * np.sqrt(np.pi / b) * np.exp(-np.pi ** 2 * square / b) for a, b in ((a1, b1), (a2, b2)))
    return g / g.sum()


FILTERS = [contrast_filter(1, 0.0047, 0, 1e-5), contrast_filter(1, 0.0053, 0, 1e-5), contrast_filter(34.1, 0.04, 13.5, 0.025)]


def perceived(srgb):
    """What remains at that distance, in the space in which differences are measured, and the lightness for the features."""
    c = opponent(linear(srgb) @ TO_XYZ.T)
    seen = np.stack([filtered(c[..., k], FILTERS[k]) for k in range(3)], -1)
    rgb = np.clip(xyz_of_opponent(seen) @ np.linalg.inv(TO_XYZ).T, 0, 1)
    return hunt(lab(rgb @ TO_XYZ.T)), (c[..., 0] + 16) / 116


def feature_kernels():
    deviation = 0.5 * FEATURE_WIDTH * PIXELS_PER_DEGREE
    radius = int(np.ceil(3 * deviation))
    x = np.arange(-radius, radius + 1)
    g = np.exp(-(x[None, :] ** 2 + x[:, None] ** 2) / (2 * deviation ** 2))
    edge, point = -x[None, :] * g, (x[None, :] ** 2 / deviation ** 2 - 1) * g
    return [np.where(k < 0, k / -k[k < 0].sum(), k / k[k > 0].sum()) for k in (edge, point)]


FEATURES = feature_kernels()


def feature(lightness, kernel):
    return np.hypot(filtered(lightness, kernel), filtered(lightness, kernel.T))


def flip(reference, test):
    """f64[rows, columns], from two pictures f64[rows, columns, 3] in sRGB."""
    (a, light_a), (b, light_b) = perceived(reference), perceived(test)
    green, blue = (hunt(lab(np.array(c) @ TO_XYZ.T)) for c in ([0.0, 1.0, 0.0], [0.0, 0.0, 1.0]))
    most = hyab(green, blue) ** COLOUR_EXPONENT
    colour = hyab(a, b) ** COLOUR_EXPONENT
    knee = LARGE_FROM * most
    colour = np.where(colour < knee, LARGE_TO / knee * colour, LARGE_TO + (colour - knee) / (most - knee) * (1 - LARGE_TO))
    features = np.maximum(*(np.abs(feature(light_a, k) - feature(light_b, k)) for k in FEATURES))
    return np.clip(colour, 0, 1) ** (1 - (features / np.sqrt(2)) ** FEATURE_EXPONENT)
