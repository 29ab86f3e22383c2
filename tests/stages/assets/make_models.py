#!/usr/bin/env python3
"""Writes a small model for each feature of a scene file: make_models.py FOLDER. Also a module: MODELS, write_models().

Each shows a square with a normal and texture coordinates; its name is that of the feature that it uses.
"""
import base64
import json
import os
import struct
import sys
import zlib

POSITIONS = [-1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 1, 0]


def png(rows):
    """A PNG of rows of (r, g, b, a)."""
    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    pixels = b"".join(b"\0" + b"".join(bytes(p) for p in row) for row in rows)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 6, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b""))


CHECKER = png([[(230, 60, 40, 255), (250, 240, 220, 0)], [(250, 240, 220, 0), (230, 60, 40, 255)]])
FLAT_NORMAL = png([[(128, 128, 255, 255)]])


class Model:
    def __init__(self):
        self.bytes = b""
        self.json = {"asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}],
                     "meshes": [{"primitives": [{"attributes": {}}]}], "bufferViews": [], "accessors": []}
        self.primitive = self.json["meshes"][0]["primitives"][0]
        for key, values, kind in (("POSITION", POSITIONS, "VEC3"), ("NORMAL", [0, 0, 1] * 4, "VEC3"),
                                  ("TEXCOORD_0", [0, 1, 1, 1, 1, 0, 0, 0], "VEC2")):
            self.attribute(key, self.accessor("f", values, kind))
        self.primitive["indices"] = self.accessor("H", [0, 1, 2, 0, 2, 3], "SCALAR")

    def view(self, content):
        self.bytes += b"\0" * (-len(self.bytes) % 4)
        self.json["bufferViews"].append({"buffer": 0, "byteOffset": len(self.bytes), "byteLength": len(content)})
        self.bytes += content
        return len(self.json["bufferViews"]) - 1

    def accessor(self, code, values, kind, **more):
        component = {"b": 5120, "B": 5121, "h": 5122, "H": 5123, "I": 5125, "f": 5126}[code]
        each = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16}[kind]
        self.json["accessors"].append({"bufferView": self.view(struct.pack(f"<{len(values)}{code}", *values)), "type": kind,
                                       "componentType": component, "count": len(values) // each, **more})
        return len(self.json["accessors"]) - 1

    def attribute(self, key, accessor):
        self.primitive["attributes"][key] = accessor

    def texture(self, picture, **sampler):
        for name in ("images", "textures", "samplers"):
            self.json.setdefault(name, [])
        self.json["images"].append({"bufferView": self.view(picture), "mimeType": "image/png"})
        self.json["samplers"].append(sampler)
        self.json["textures"].append({"source": len(self.json["images"]) - 1, "sampler": len(self.json["samplers"]) - 1})
        return {"index": len(self.json["textures"]) - 1}

    def material(self, **keys):
        # neither metallic nor glossy, so that the model uses one feature only
        base = {"metallicFactor": 0, **keys.pop("pbrMetallicRoughness", {})}
        self.json["materials"] = [{"pbrMetallicRoughness": base, **keys}]
        self.primitive["material"] = 0

    def animate(self, path, values, kind):
        times = self.accessor("f", [0, 1], "SCALAR")
        self.json["animations"] = [{"samplers": [{"input": times, "output": self.accessor("f", values, kind)}],
                                    "channels": [{"sampler": 0, "target": {"node": 0, "path": path}}]}]

    def text(self):
        data = base64.b64encode(self.bytes).decode()
        return json.dumps({**self.json, "buffers": [{"byteLength": len(self.bytes),
                                                     "uri": "data:application/octet-stream;base64," + data}]})


def skin(m):
    m.attribute("JOINTS_0", m.accessor("B", [0, 1, 0, 0] * 4, "VEC4"))
    m.attribute("WEIGHTS_0", m.accessor("f", [0.5, 0.5, 0, 0] * 4, "VEC4"))
    m.json["nodes"] = [{"mesh": 0, "skin": 0}, {"children": [2]}, {"translation": [0, 1, 0]}]
    m.json["scenes"] = [{"nodes": [0, 1]}]
    m.json["skins"] = [{"joints": [1, 2]}]


def sparse(m):
    m.json["accessors"][0]["sparse"] = {"count": 1, "indices": {"bufferView": m.view(b"\2"), "componentType": 5121},
                                        "values": {"bufferView": m.view(struct.pack("<3f", 2, 2, 0))}}


def quantized(m):
    m.attribute("POSITION", m.accessor("b", POSITIONS, "VEC3"))
    m.attribute("NORMAL", m.accessor("b", [0, 0, 127] * 4, "VEC3", normalized=True))
    m.json["extensionsUsed"] = m.json["extensionsRequired"] = ["KHR_mesh_quantization"]


def instances(m):
    places = m.accessor("f", [0, 0, 0, 3, 0, 0, 0, 3, 0], "VEC3")
    m.json["nodes"][0]["extensions"] = {"EXT_mesh_gpu_instancing": {"attributes": {"TRANSLATION": places}}}


def lights(m):
    m.json["extensions"] = {"KHR_lights_punctual": {"lights": [{"type": "point", "intensity": 20}]}}
    m.json["nodes"][0]["extensions"] = {"KHR_lights_punctual": {"light": 0}}


def cameras(m):
    m.json["cameras"] = [{"type": "perspective", "perspective": {"yfov": 0.8, "znear": 0.1}}]
    m.json["nodes"][0]["camera"] = 0


def morph_targets(m):
    m.primitive["targets"] = [{"POSITION": m.accessor("f", [0, 0, 1] * 4, "VEC3")}]
    m.json["meshes"][0]["weights"] = [0.5]


def of_material(**keys):
    return lambda m: m.material(**keys)


def of_texture(key, picture=FLAT_NORMAL, **keys):
    return lambda m: m.material(**{key: m.texture(picture)}, **keys)


def of_base_color(picture=CHECKER, sampler=None, **keys):
    return lambda m: m.material(pbrMetallicRoughness={"baseColorTexture": m.texture(picture, **(sampler or {}))}, **keys)


def extension(name, **keys):
    return of_material(extensions={name: keys})


# name of the model: (what makes it, the feature of `carousel mesh-info` that pictures do not show, or None)
MODELS = {
    "plain": (of_material(), None),
    "base_color": (of_base_color(), None),
    "double_sided": (of_material(doubleSided=True), None),
    "sparse": (sparse, None),
    "quantized": (quantized, None),
    "instances": (instances, None),
    "alpha_blend": (of_base_color(alphaMode="BLEND"), "alpha_blend"),
    "alpha_mask": (of_base_color(alphaMode="MASK"), "alpha_mask"),
    "animations": (lambda m: m.animate("rotation", [0, 0, 0, 1, 0, 0, 1, 0], "VEC4"), None),
    "cameras": (cameras, "cameras"),
    "clearcoat": (extension("KHR_materials_clearcoat", clearcoatFactor=1), "clearcoat"),
    "emission": (of_material(emissiveFactor=[1, 0.5, 0]), "emission"),
    "lights": (lights, "lights"),
    "metallic_roughness": (of_material(pbrMetallicRoughness={"metallicFactor": 1, "roughnessFactor": 0.3}), "metallic_roughness"),
    "morph_targets": (morph_targets, None),
    "nearest_filter": (of_base_color(sampler={"magFilter": 9728}), "nearest_filter"),
    "normal_maps": (of_texture("normalTexture"), "normal_maps"),
    "occlusion_maps": (of_texture("occlusionTexture"), "occlusion_maps"),
    "skins": (skin, None),
    "specular_color": (extension("KHR_materials_specular", specularColorFactor=[1, 0.5, 0]), "specular_factors"),
    "index_of_refraction": (extension("KHR_materials_ior", ior=1.2), "specular_factors"),
    "transmission": (extension("KHR_materials_transmission", transmissionFactor=0.5), "transmission"),
    "unlit": (extension("KHR_materials_unlit"), "unlit"),
    "vertex_colors": (lambda m: m.attribute("COLOR_0", m.accessor("f", [1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1], "VEC3")), "vertex_colors"),
    "wrap_modes": (of_base_color(sampler={"wrapS": 33071}), "wrap_modes"),
}


def write_models(folder):
    """Writes NAME.gltf for each of MODELS."""
    for name, (make, _) in MODELS.items():
        model = Model()
        make(model)
        with open(os.path.join(folder, name + ".gltf"), "w", encoding="utf-8") as file:
            file.write(model.text())


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    write_models(sys.argv[1])
