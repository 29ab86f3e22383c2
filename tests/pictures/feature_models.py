"""A model for each feature of glTF that pictures show: FEATURES, write(feature, folder).

Each function makes its model with the feature, or, as the control, without it. `limit` is the greatest FLIP between Carousel's picture
and the reference: 0.08 where only the shape is new, 0.12 for properties of the surface, 0.16 for mirrored light, several layers and
lights. The limits were fixed before the first comparison. Where the reference viewer lacks a feature, `same` makes a plain model of the
same appearance for it.
"""
import dataclasses
import math
import os
import struct
import sys
from typing import Callable, Optional

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stages", "assets"))
from make_models import Model, png  # noqa: E402
from moving_model import grid, primitive, quaternion, sphere, torus  # noqa: E402

SHAPE, SURFACE, LIGHT = 0.08, 0.12, 0.16
CLAY, BLUE = [0.8, 0.45, 0.3, 1], [0.2, 0.4, 0.8, 1]


def model_of(vertices, indices, color=CLAY, roughness=0.9, metallic=0, attributes=None, **material):
    """One mesh with one material."""
    model = Model()
    base = {"baseColorFactor": color, "roughnessFactor": roughness, "metallicFactor": metallic, **material.pop("pbrMetallicRoughness", {})}
    model.json["materials"] = [{"pbrMetallicRoughness": base, **material}]
    made = {key: model.accessor(*value) for key, value in (attributes or {}).items()}
    model.json["meshes"] = [{"primitives": [primitive(model, vertices, indices, 0, **made)]}]
    model.primitive = model.json["meshes"][0]["primitives"][0]
    model.base = base
    return model


def ball(**keys):
    return model_of(*sphere(1, 48, 32), **keys)


def tile(side, color_at):
    """A PNG of `side` x `side` pixels."""
    return png([[color_at(x, y) for x in range(side)] for y in range(side)])


def checks(a, b, side=16, step=2):
    return tile(side, lambda x, y: a if (x // step + y // step) % 2 else b)


RED_WHITE = checks((220, 50, 40, 255), (240, 235, 220, 255))


def metallic_roughness(shown):
    return ball(color=[0.95, 0.75, 0.4, 1], **({"roughness": 0.3, "metallic": 1} if shown else {}))


def metallic_roughness_texture(shown):
    model = ball(color=[0.9, 0.9, 0.9, 1], roughness=1, metallic=1 if shown else 0)
    if shown:
        model.base["metallicRoughnessTexture"] = model.texture(tile(8, lambda x, y: (0, 80 + 20 * y, 255 if x % 4 < 2 else 0, 255)))
    return model


def base_color_texture(shown):
    model = ball(color=[1, 1, 1, 1])
    if shown:
        model.base["baseColorTexture"] = model.texture(RED_WHITE)
    return model


def normal_map(shown, **keys):
    model = ball(roughness=0.5, **keys)
    if shown:
        def bump(x, y):
            nx, ny = 0.6 * math.sin(2 * math.pi * x / 16), 0.6 * math.sin(2 * math.pi * y / 16)
            return (*(round(127.5 * (v + 1)) for v in (nx, ny, math.sqrt(1 - nx * nx - ny * ny))), 255)
        model.json["materials"][0]["normalTexture"] = model.texture(tile(64, bump))
    return model


def normal_map_with_tangents():
    """The reference takes the axes of the screen for missing tangents wherever the texture is magnified (|dFdx(uv)| <= 0.01)."""
    angles = [2 * math.pi * t[0] for _, _, t in sphere(1, 48, 32)[0]]
    return normal_map(True, attributes={"TANGENT": ("f", [x for a in angles for x in (-math.sin(a), 0, math.cos(a), -1)], "VEC4")})


def occlusion_map(shown):
    model = ball()
    if shown:
        model.json["materials"][0]["occlusionTexture"] = model.texture(checks((20, 0, 0, 255), (255, 0, 0, 255), 8, 2))
    return model


def emission(shown):
    model = ball(color=[0.05, 0.05, 0.05, 1])
    if shown:
        model.json["materials"][0].update(emissiveFactor=[0.1, 0.5, 0.2], emissiveTexture=model.texture(checks((255,) * 4, (0, 0, 0, 255))))
    return model


def emissive_strength(shown):
    model = ball(color=[0.05, 0.05, 0.05, 1], emissiveFactor=[0.05, 0.2, 0.1])
    if shown:
        model.json["materials"][0]["extensions"] = {"KHR_materials_emissive_strength": {"emissiveStrength": 4}}
        model.json["extensionsUsed"] = ["KHR_materials_emissive_strength"]
    return model


def vertex_colors(shown):
    vertices, indices = sphere(1, 48, 32)
    colors = [c for p, _, _ in vertices for c in (0.5 + 0.5 * p[0], 0.5 + 0.5 * p[1], 0.5 + 0.5 * p[2])]
    return model_of(vertices, indices, color=[1, 1, 1, 1], attributes={"COLOR_0": ("f", colors, "VEC3")} if shown else {})


def alpha_mask(shown):
    model = ball(color=[1, 1, 1, 1], doubleSided=True, **({"alphaMode": "MASK"} if shown else {}))
    model.base["baseColorTexture"] = model.texture(checks((220, 50, 40, 255), (240, 235, 220, 0), 8, 1), magFilter=9728, minFilter=9728)
    return model


def panes(shown):
    """Three panes in a row towards the camera, each of half its colour."""
    model = Model()
    vertices = [([x, y, 0], [0, 0, 1], [0, 0]) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    colors = ([0.8, 0.2, 0.1, 0.5], [0.1, 0.6, 0.2, 0.5], [0.1, 0.2, 0.8, 0.5])
    mode = {"alphaMode": "BLEND"} if shown else {}
    model.json["materials"] = [{"pbrMetallicRoughness": {"baseColorFactor": c, "metallicFactor": 0, "roughnessFactor": 1}, "doubleSided": True, **mode} for c in colors]
    model.json["meshes"] = [{"primitives": [primitive(model, vertices, [0, 1, 2, 0, 2, 3], k)]} for k in range(3)]
    model.json["nodes"] = [{"mesh": k, "translation": [0.5 * k - 0.5, 0.3 * k - 0.3, 0.5 * k]} for k in range(3)]
    model.json["scenes"] = [{"nodes": [0, 1, 2]}]
    return model


def double_sided(shown):
    """A bowl: the camera sees its inner side, too."""
    vertices, indices = sphere(1, 48, 32)
    lower = [t for t in zip(*[iter(indices)] * 3) if all(vertices[i][0][1] < 0.01 for i in t)]
    return model_of(vertices, [i for t in lower for i in t], **({"doubleSided": True} if shown else {}))


def unlit(shown):
    model = ball(color=[0.9, 0.6, 0.2, 1])
    if shown:
        model.json["materials"][0]["extensions"] = {"KHR_materials_unlit": {}}
        model.json["extensionsUsed"] = ["KHR_materials_unlit"]
    return model


def pole():
    """A column of radius 0.3 and height 2, with rows of vertices along it."""
    rows, columns = 24, 24
    vertices = []
    for v in range(rows + 1):
        for u in range(columns + 1):
            a = -2 * math.pi * u / columns
            n = [math.cos(a), 0, math.sin(a)]
            vertices.append(([0.3 * n[0], 2 * v / rows, 0.3 * n[2]], n, [u / columns, v / rows]))
    return vertices, grid(columns, rows, 0)


def skin(shown):
    vertices, indices = pole()
    upper = [min(1.0, max(0.0, p[1] - 0.5)) for p, _, _ in vertices]
    attributes = {"JOINTS_0": ("B", [0, 1, 0, 0] * len(vertices), "VEC4"), "WEIGHTS_0": ("f", [x for w in upper for x in (1 - w, w, 0, 0)], "VEC4")}
    model = model_of(vertices, indices, attributes=attributes, doubleSided=True)
    inverse = [[1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, -y, 0, 1] for y in (0, 1)]
    model.json["skins"] = [{"joints": [1, 2], "inverseBindMatrices": model.accessor("f", inverse[0] + inverse[1], "MAT4")}]
    bent = {"rotation": quaternion([0, 0, 1], 1.0)} if shown else {}
    model.json["nodes"] = [{"mesh": 0, "skin": 0}, {"children": [2]}, {"translation": [0, 1, 0], **bent}]
    model.json["scenes"] = [{"nodes": [0, 1]}]
    return model


def morph_targets(shown):
    vertices, indices = sphere(1, 48, 32)
    model = model_of(vertices, indices)
    model.primitive["targets"] = [{"POSITION": model.accessor("f", [x for p, _, _ in vertices for x in (0.6 * p[0] * p[1], 0.5 * p[1], 0.6 * p[2] * p[1])], "VEC3")}]
    model.json["meshes"][0]["weights"] = [0.8 if shown else 0]
    return model


def animation(shown):
    """Half way of a turn about z by 90 degrees, of an ellipsoid."""
    model = ball()
    model.json["nodes"][0]["scale"] = [1, 0.35, 0.35]
    if shown:
        model.animate("rotation", [0, 0, 0, 1, *quaternion([0, 0, 1], math.pi / 2)], "VEC4")
    return model


def camera(shown):
    """From above; the control is seen from the usual side."""
    model = model_of(*torus(0.8, 0.3, 48, 24))
    if shown:
        model.json["cameras"] = [{"type": "perspective", "perspective": {"yfov": 0.7, "aspectRatio": 1, "znear": 0.1, "zfar": 100}}]
        model.json["nodes"].append({"camera": 0, "translation": [0, 3, 3], "rotation": quaternion([1, 0, 0], -math.pi / 4)})
        model.json["scenes"] = [{"nodes": [0, 1]}]
    return model


def light_of(kind, place, **keys):
    def make(shown):
        model = ball(color=[0.9, 0.9, 0.9, 1])
        if shown:
            model.json["extensions"] = {"KHR_lights_punctual": {"lights": [{"type": kind, **keys}]}}
            model.json["extensionsUsed"] = ["KHR_lights_punctual"]
            model.json["nodes"].append({**place, "extensions": {"KHR_lights_punctual": {"light": 0}}})
            model.json["scenes"] = [{"nodes": [0, 1]}]
        return model
    return make


PLACES = [[-1.2, 0, 0], [0, 0.8, -0.5], [1.2, 0, 0]]


def instances(shown):
    model = ball()
    if shown:
        attributes = {"TRANSLATION": model.accessor("f", [x for p in PLACES for x in p], "VEC3"),
                      "SCALE": model.accessor("f", [0.5, 0.5, 0.5] * 3, "VEC3")}
        model.json["nodes"][0]["extensions"] = {"EXT_mesh_gpu_instancing": {"attributes": attributes}}
        model.json["extensionsUsed"] = ["EXT_mesh_gpu_instancing"]
    return model


def instances_as_nodes():
    model = ball()
    model.json["nodes"] = [{"mesh": 0, "translation": p, "scale": [0.5] * 3} for p in PLACES]
    model.json["scenes"] = [{"nodes": [0, 1, 2]}]
    return model


def quantization(shown):
    vertices, indices = sphere(1, 48, 32)
    model = model_of(vertices, indices)
    if shown:
        model.attribute("POSITION", model.accessor("h", [round(32767 * x) for p, _, _ in vertices for x in (*p, 0)], "VEC4"))
        strided = model.json["accessors"][-1]   # three of four components, so that elements are aligned to 4 bytes
        strided.update(type="VEC3", normalized=True, count=len(vertices), min=[-1, -1, -1], max=[1, 1, 1])
        model.json["bufferViews"][strided["bufferView"]]["byteStride"] = 8
        model.json["nodes"][0]["scale"] = [1, 0.6, 1]
        model.json["extensionsUsed"] = model.json["extensionsRequired"] = ["KHR_mesh_quantization"]
    return model


def flattened():
    model = ball()
    model.json["nodes"][0]["scale"] = [1, 0.6, 1]
    return model


def meshopt_vertices(content, stride):
    """A stream of meshoptimizer's vertex codec, version 0: differences to the vertex before, a byte column after the other, in groups of 16
    whole bytes."""
    out, last = bytearray([0xa0]), content[:stride]
    per_block = min(8192 // stride & ~15, 256)
    rows = [content[at:at + stride] for at in range(0, len(content), stride)]
    for first in range(0, len(rows), per_block):
        block = rows[first:first + per_block]
        for k in range(stride):
            before = [last[k], *(row[k] for row in block[:-1])]
            steps = [(row[k] - old + 128) % 256 - 128 for row, old in zip(block, before)]
            column = bytes((step << 1 ^ step >> 7) & 255 for step in steps) + bytes(-len(steps) % 16)
            out += b"\xff" * ((len(column) // 16 + 3) // 4) + column
        last = block[-1]
    return bytes(out + bytes(max(0, 32 - stride)) + content[:stride])


def meshopt_indices(numbers):
    """A stream of meshoptimizer's codec of index sequences, version 1, with differences to one baseline."""
    out, last = bytearray([0xd1]), 0
    for number in numbers:
        step, last = number - last, number
        word = (step << 1 if step >= 0 else -step * 2 - 1) << 1
        while word > 127:
            out.append(word & 127 | 128)
            word >>= 7
        out.append(word)
    return bytes(out + bytes(4))


def meshopt(shown):
    """A flattened ball of compressed views; what a reader without the extension finds is zeros."""
    model = ball()
    if not shown:
        return model
    model.json["nodes"][0]["scale"] = [1, 0.6, 1]
    model.json["extensionsUsed"] = model.json["extensionsRequired"] = ["EXT_meshopt_compression"]
    for number in (*model.primitive["attributes"].values(), model.primitive["indices"]):
        accessor = model.json["accessors"][number]
        view = model.json["bufferViews"][accessor["bufferView"]]
        at, size = view["byteOffset"], view["byteLength"]
        content, stride = model.bytes[at:at + size], size // accessor["count"]
        if number == model.primitive["indices"]:
            mode, stream = "INDICES", meshopt_indices(struct.unpack(f"<{accessor['count']}H", content))
        else:
            mode, stream = "ATTRIBUTES", meshopt_vertices(content, stride)
            view["byteStride"] = stride
        model.view(stream)
        place = model.json["bufferViews"].pop()
        view["extensions"] = {"EXT_meshopt_compression": {**place, "byteStride": stride, "count": accessor["count"], "mode": mode}}
        model.bytes = model.bytes[:at] + bytes(size) + model.bytes[at + size:]
    return model


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes([number])


def draco_mesh(indices, attributes):
    """A mesh of Draco's bitstream 2.2, sequential, with nothing compressed. `attributes`: (kind, components, float content) each, with its
    position as its number."""
    out = b"DRACO" + struct.pack("<BBBBH", 2, 2, 1, 0, 0) + varint(len(indices) // 3) + varint(max(indices) + 1) + b"\1"
    out += struct.pack(f"<{len(indices)}H", *indices) + b"\1" + varint(len(attributes))
    for number, (kind, components, _) in enumerate(attributes):
        out += struct.pack("<BBBB", kind, 9, components, 0) + varint(number)   # 9: 32-bit float
    return out + bytes(len(attributes)) + b"".join(content for _, _, content in attributes)


def draco(shown):
    """A flattened ball as a stream of Draco; what a reader without the extension finds is zeros."""
    model = ball()
    if not shown:
        return model
    model.json["nodes"][0]["scale"] = [1, 0.6, 1]
    model.json["extensionsUsed"] = model.json["extensionsRequired"] = ["KHR_draco_mesh_compression"]
    kinds, content = {"POSITION": 0, "NORMAL": 1, "TEXCOORD_0": 3}, {}
    used = model.primitive["attributes"]
    for number in (*used.values(), model.primitive["indices"]):
        accessor = model.json["accessors"][number]
        view = model.json["bufferViews"][accessor["bufferView"]]
        at, size = view["byteOffset"], view["byteLength"]
        content[number] = model.bytes[at:at + size]
        model.bytes = model.bytes[:at] + bytes(size) + model.bytes[at + size:]
    indices = content[model.primitive["indices"]]
    stream = draco_mesh(struct.unpack(f"<{len(indices) // 2}H", indices),
                        [(kinds[name], 2 if name == "TEXCOORD_0" else 3, content[number]) for name, number in used.items()])
    model.primitive["extensions"] = {"KHR_draco_mesh_compression": {
        "bufferView": model.view(stream), "attributes": {name: k for k, name in enumerate(used)}}}
    return model


def transmission(shown):
    """A pane between the camera and a ball, which hides the background: the reference transmits black instead of the sky."""
    model = ball()
    vertices = [([0.78 + x, 0.63 + y, 1.11], [0, 0, 1], [0, 0]) for x, y in ((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5))]
    model.json["materials"].append({"pbrMetallicRoughness": {"baseColorFactor": [0.6, 0.8, 1, 1], "metallicFactor": 0, "roughnessFactor": 0}})
    if shown:
        model.json["materials"][1]["extensions"] = {"KHR_materials_transmission": {"transmissionFactor": 0.8}}
        model.json["extensionsUsed"] = ["KHR_materials_transmission"]
    model.json["meshes"].append({"primitives": [primitive(model, vertices, [0, 1, 2, 0, 2, 3], 1)]})
    model.json["nodes"].append({"mesh": 1})
    model.json["scenes"] = [{"nodes": [0, 1]}]
    return model


def sparse(shown):
    vertices, indices = sphere(1, 48, 32)
    model = model_of(vertices, indices)
    if shown:
        top = [k for k, (p, _, _) in enumerate(vertices) if p[1] > 0.6]
        moved = [x for k in top for x in (vertices[k][0][0], vertices[k][0][1] + 0.6, vertices[k][0][2])]
        model.json["accessors"][model.primitive["attributes"]["POSITION"]].update(max=[1, 1.6, 1], sparse={
            "count": len(top), "indices": {"bufferView": model.view(struct.pack(f"<{len(top)}H", *top)), "componentType": 5123},
            "values": {"bufferView": model.view(struct.pack(f"<{len(moved)}f", *moved))}})
    return model


def texture_transform(shown):
    model = base_color_texture(True)
    if shown:
        model.base["baseColorTexture"]["extensions"] = {"KHR_texture_transform": {"scale": [0.5, 0.25], "rotation": 0.6, "offset": [0.1, 0.2]}}
        model.json["extensionsUsed"] = ["KHR_texture_transform"]
    return model


def second_coordinates(shown):
    vertices, indices = sphere(1, 48, 32)
    model = model_of(vertices, indices, color=[1, 1, 1, 1], attributes={"TEXCOORD_1": ("f", [x for _, _, t in vertices for x in (0.25 * t[1], 0.5 * t[0])], "VEC2")})
    model.base["baseColorTexture"] = {**model.texture(RED_WHITE), **({"texCoord": 1} if shown else {})}
    return model


def wrap_modes(shown):
    vertices, indices = sphere(1, 48, 32)
    model = model_of([(p, n, [3 * t[0] - 1, 3 * t[1] - 1]) for p, n, t in vertices], indices, color=[1, 1, 1, 1])
    rainbow = tile(16, lambda x, y: (16 * x, 40, 16 * y, 255))
    model.base["baseColorTexture"] = model.texture(rainbow, **({"wrapS": 33071, "wrapT": 33648} if shown else {}))
    return model


def clearcoat(shown):
    model = ball(color=[0.6, 0.05, 0.05, 1])
    if shown:
        model.json["materials"][0]["extensions"] = {"KHR_materials_clearcoat": {"clearcoatFactor": 1, "clearcoatRoughnessFactor": 0.06}}
        model.json["extensionsUsed"] = ["KHR_materials_clearcoat"]
    return model


def mirrored_node(shown):
    """A negative scale turns the front faces, and with them what is culled."""
    vertices, indices = sphere(1, 48, 32)
    model = model_of([([p[0], p[1] * (1 + 0.5 * p[0]), p[2]], n, t) for p, n, t in vertices], indices)
    if shown:
        model.json["nodes"][0]["scale"] = [-1, 1, 1]
    return model


def strips(shown):
    """A triangle strip of a bent ribbon; as a list the same indices are other triangles."""
    vertices = [([-1 + k / 10, y + 0.3 * math.sin(k / 3), 0.3 * math.cos(k / 3)], [0, 0, 1], [0, 0]) for k in range(21) for y in (0.3, -0.3)]
    model = model_of(vertices, [i for k in range(0, 42, 2) for i in (k + 1, k)], doubleSided=True)
    if shown:
        model.primitive["mode"] = 5
    return model


@dataclasses.dataclass
class Feature:
    make: Callable
    limit: float
    same: Optional[Callable] = None   # the model of the reference
    time: float = 0                   # of the animation, in seconds
    camera: Optional[dict] = None     # the file's own, as Carousel's parameters
    lights: bool = False              # only those of the file, without the sky


FACING = {"rotation": quaternion([0, 1, 0], 0.6)}   # lights shine along -z of their node
FEATURES = {
    "plain": Feature(lambda shown: ball() if shown else ball(color=BLUE), SHAPE),
    "metallic_roughness": Feature(metallic_roughness, LIGHT),
    "metallic_roughness_texture": Feature(metallic_roughness_texture, LIGHT),
    "base_color_texture": Feature(base_color_texture, SURFACE),
    "normal_map": Feature(normal_map, LIGHT, same=normal_map_with_tangents),
    "occlusion_map": Feature(occlusion_map, SURFACE),
    "emission": Feature(emission, SURFACE),
    "emissive_strength": Feature(emissive_strength, SURFACE),
    "vertex_colors": Feature(vertex_colors, SURFACE),
    "alpha_mask": Feature(alpha_mask, LIGHT),
    "alpha_blend": Feature(panes, LIGHT),
    "double_sided": Feature(double_sided, SHAPE),
    "unlit": Feature(unlit, SURFACE),
    "skin": Feature(skin, SHAPE),
    "morph_targets": Feature(morph_targets, SHAPE),
    "animation": Feature(animation, SHAPE, time=0.5),
    "camera": Feature(camera, SHAPE, camera={"eye": [0, 3, 3], "target": [0, 0, 0], "fov_y": 0.7}),
    "directional_light": Feature(light_of("directional", FACING, intensity=3), LIGHT, lights=True),
    "point_light": Feature(light_of("point", {"translation": [1, 2, 1.5]}, intensity=12, color=[1, 0.8, 0.5]), LIGHT, lights=True),
    "spot_light": Feature(light_of("spot", {"translation": [0.5, 0.3, 3]}, intensity=30, spot={"innerConeAngle": 0.1, "outerConeAngle": 0.25}), LIGHT, lights=True),
    "instances": Feature(instances, SHAPE, same=instances_as_nodes),
    "quantization": Feature(quantization, SHAPE, same=flattened),
    "sparse_accessor": Feature(sparse, SHAPE),
    "texture_transform": Feature(texture_transform, SURFACE),
    "second_coordinates": Feature(second_coordinates, SURFACE),
    "wrap_modes": Feature(wrap_modes, SURFACE),
    "clearcoat": Feature(clearcoat, LIGHT),
    "mirrored_node": Feature(mirrored_node, SHAPE),
    "triangle_strip": Feature(strips, SHAPE),
    "meshopt": Feature(meshopt, SHAPE, same=flattened),
    "transmission": Feature(transmission, LIGHT),
    "draco": Feature(draco, SHAPE, same=flattened),
}


def write(path, model):
    with open(path, "w", encoding="utf-8") as file:
        file.write(model.text())
