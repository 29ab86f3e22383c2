#!/usr/bin/env python3
"""Writes a model that moves: moving_model.py FILE.gltf. Also a module: write_moving_model(path).

A body whose morph target makes it breathe, and arms of six joints that sway, as one skin; four small rings turn around
them (EXT_mesh_gpu_instancing, an animated node). The channels are linear, cubic and in steps, 4 seconds long. A second
animation, "rest", keeps the arms still.
"""
import math
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from make_models import Model  # noqa: E402

ARMS, JOINTS, AROUND, ALONG = 7, 6, 12, 30
LENGTH, SECONDS, KEYS = 0.35, 4.0, 17


def quaternion(axis, angle):
    s = math.sin(angle / 2)
    return [axis[0] * s, axis[1] * s, axis[2] * s, math.cos(angle / 2)]


def grid(u_count, v_count, first):
    """Triangles of a grid of (u_count + 1) x (v_count + 1) vertices."""
    out = []
    for v in range(v_count):
        for u in range(u_count):
            a = first + v * (u_count + 1) + u
            out += [a, a + 1, a + u_count + 1, a + 1, a + u_count + 2, a + u_count + 1]
    return out


def primitive(model, vertices, indices, material, **attributes):
    used = {"POSITION": [x for p, _, _ in vertices for x in p], "NORMAL": [x for _, n, _ in vertices for x in n]}
    made = {key: model.accessor("f", values, "VEC3") for key, values in used.items()}
    points = [p for p, _, _ in vertices]
    model.json["accessors"][made["POSITION"]].update(min=[min(axis) for axis in zip(*points)], max=[max(axis) for axis in zip(*points)])
    made["TEXCOORD_0"] = model.accessor("f", [x for _, _, t in vertices for x in t], "VEC2")
    made.update(attributes)
    return {"attributes": made, "indices": model.accessor("H", indices, "SCALAR"), "material": material}


def sphere(radius, u_count=24, v_count=16):
    vertices = []
    for v in range(v_count + 1):
        for u in range(u_count + 1):
            a, b = 2 * math.pi * u / u_count, math.pi * v / v_count
            n = [math.sin(b) * math.cos(a), math.cos(b), math.sin(b) * math.sin(a)]
            vertices.append(([radius * x for x in n], n, [u / u_count, v / v_count]))
    return vertices, grid(u_count, v_count, 0)


def torus(major, minor, u_count=24, v_count=10):
    vertices = []
    for v in range(v_count + 1):
        for u in range(u_count + 1):
            a, b = 2 * math.pi * u / u_count, 2 * math.pi * v / v_count
            n = [math.cos(b) * math.cos(a), math.cos(b) * math.sin(a), math.sin(b)]
            vertices.append(([(major + minor * math.cos(b)) * math.cos(a), (major + minor * math.cos(b)) * math.sin(a), minor * math.sin(b)],
                             n, [u / u_count, v / v_count]))
    return vertices, grid(u_count, v_count, 0)


def arms():
    """All arms in the bind pose, straight up the y axis of each arm's root; joints and weights of each vertex."""
    vertices, indices, joints, weights = [], [], [], []
    for arm in range(ARMS):
        first = len(vertices)
        for v in range(ALONG + 1):
            height = LENGTH * JOINTS * v / ALONG
            radius = 0.13 * (1 - 0.85 * v / ALONG)
            at = min(height / LENGTH, JOINTS - 1e-6)
            lower = int(at)
            part = at - lower
            upper = min(lower + 1, JOINTS - 1)
            for u in range(AROUND + 1):
                a = -2 * math.pi * u / AROUND
                n = [math.cos(a), 0.85 * 0.13 / (LENGTH * JOINTS), math.sin(a)]
                vertices.append(([radius * n[0], height, radius * n[2]], n, [u / AROUND, 1 - v / ALONG]))
                joints.extend([arm * JOINTS + lower, arm * JOINTS + upper, 0, 0])
                weights.extend([1 - part, part, 0, 0])
        indices += grid(AROUND, ALONG, first)
    return vertices, indices, joints, weights


def make_moving_model():
    model = Model()
    model.json.update({"meshes": [], "nodes": [], "animations": [], "skins": []})
    colors = ((0.85, 0.32, 0.22), (0.95, 0.68, 0.30), (0.25, 0.45, 0.80))
    model.json["materials"] = [{"pbrMetallicRoughness": {"baseColorFactor": [*c, 1], "metallicFactor": 0, "roughnessFactor": 0.4}} for c in colors]
    nodes = model.json["nodes"]

    body_vertices, body_indices = sphere(0.5)
    body = primitive(model, body_vertices, body_indices, 1)
    body["targets"] = [{"POSITION": model.accessor("f", [x for p, _, _ in body_vertices for x in (0.25 * p[0], -0.35 * p[1], 0.25 * p[2])], "VEC3")}]
    vertices, indices, joints, weights = arms()
    skinned = primitive(model, vertices, indices, 0, JOINTS_0=model.accessor("B", joints, "VEC4"), WEIGHTS_0=model.accessor("f", weights, "VEC4"))
    ring = primitive(model, *torus(0.16, 0.05), 2)
    model.json["meshes"] = [{"primitives": [body], "weights": [0]}, {"primitives": [skinned]}, {"primitives": [ring]}]

    # node 0 body, 1 arms, 2 rings, then the joints
    turns = model.accessor("f", [x for k in range(4) for x in (1.3 * math.cos(k * math.pi / 2), 0.2, 1.3 * math.sin(k * math.pi / 2))], "VEC3")
    nodes += [{"mesh": 0}, {"mesh": 1, "skin": 0},
              {"mesh": 2, "extensions": {"EXT_mesh_gpu_instancing": {"attributes": {"TRANSLATION": turns}}}}]
    roots = [0, 1, 2]
    for arm in range(ARMS):
        a = 2 * math.pi * arm / ARMS
        for joint in range(JOINTS):
            node = {"translation": [0, LENGTH, 0]}
            if joint == 0:
                axis = [math.sin(a), 0, -math.cos(a)]
                node = {"translation": [0.35 * math.cos(a), 0.25, 0.35 * math.sin(a)], "rotation": quaternion(axis, 0.9)}
                roots.append(len(nodes))
            if joint + 1 < JOINTS:
                node["children"] = [len(nodes) + 1]
            nodes.append(node)
    model.json["scenes"] = [{"nodes": roots}]
    inverse = []
    for _ in range(ARMS):
        for joint in range(JOINTS):
            inverse += [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, -LENGTH * joint, 0, 1]
    model.json["skins"] = [{"joints": list(range(3, 3 + ARMS * JOINTS)), "inverseBindMatrices": model.accessor("f", inverse, "MAT4")}]

    times = [SECONDS * k / (KEYS - 1) for k in range(KEYS)]
    time = model.accessor("f", times, "SCALAR")
    samplers, channels = [], []

    def channel(node, path, values, kind, between, at=time):
        channels.append({"sampler": len(samplers), "target": {"node": node, "path": path}})
        samplers.append({"input": at, "output": model.accessor("f", values, kind), "interpolation": between})

    for arm in range(ARMS):
        a = 2 * math.pi * arm / ARMS
        axis = [math.sin(a), 0, -math.cos(a)]
        for joint in range(1, JOINTS):
            values = [x for t in times
                      for x in quaternion(axis, 0.05 * joint + 0.35 * math.sin(2 * math.pi * t / SECONDS - 0.8 * joint + 1.9 * arm))]
            channel(3 + arm * JOINTS + joint, "rotation", values, "VEC4", "LINEAR")
    breath = []   # in-tangent, value, out-tangent
    for t in times:
        slope = 2 * math.pi / SECONDS * math.sin(4 * math.pi * t / SECONDS)
        breath += [slope, math.sin(2 * math.pi * t / SECONDS) ** 2, slope]
    channel(0, "weights", breath, "SCALAR", "CUBICSPLINE")
    channel(2, "rotation", [x for t in times for x in quaternion([0, 1, 0], 2 * math.pi * t / SECONDS)], "VEC4", "LINEAR")
    channel(2, "scale", [1, 1, 1, 1.25, 1.25, 1.25], "VEC3", "STEP", model.accessor("f", [0, SECONDS / 2], "SCALAR"))
    model.json["animations"] = [{"name": "sway", "samplers": samplers, "channels": channels},
                                {"name": "rest", "samplers": samplers, "channels": channels[-3:]}]
    model.json["extensionsUsed"] = ["EXT_mesh_gpu_instancing"]
    return model


def write_moving_model(path):
    with open(path, "w", encoding="utf-8") as file:
        file.write(make_moving_model().text())


if __name__ == "__main__":
    write_moving_model(sys.argv[1])
