#!/usr/bin/env python3
"""Writes corpus/gltf: a few small files that reach every part of the reader. Run it by hand to add one."""
import base64
import json
import os
import struct
import zlib

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "gltf")
SQUARE = [-1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 1, 0]


def png():
    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    rows = b"\0\xff\0\0\0\xff\0" * 2
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows))
            + chunk(b"IEND", b""))


class Builder:
    def __init__(self):
        self.bytes = b""
        self.json = {"asset": {"version": "2.0"}, "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}],
                     "meshes": [{"primitives": [{"attributes": {}}]}], "bufferViews": [], "accessors": []}

    def view(self, content, **more):
        self.bytes += b"\0" * (-len(self.bytes) % 4)
        self.json["bufferViews"].append({"buffer": 0, "byteOffset": len(self.bytes), "byteLength": len(content), **more})
        self.bytes += content
        return len(self.json["bufferViews"]) - 1

    def accessor(self, letter, values, kind, each, **more):
        component = {"b": 5120, "B": 5121, "h": 5122, "H": 5123, "I": 5125, "f": 5126}[letter]
        at = self.view(struct.pack(f"<{len(values)}{letter}", *values))
        self.json["accessors"].append({"bufferView": at, "componentType": component, "type": kind, "count": len(values) // each, **more})
        return len(self.json["accessors"]) - 1

    def primitive(self):
        return self.json["meshes"][0]["primitives"][0]

    def write(self, name):
        self.json["buffers"] = [{"byteLength": len(self.bytes)}]
        if name.endswith(".glb"):
            text = json.dumps(self.json).encode()
            text += b" " * (-len(text) % 4)
            body = self.bytes + b"\0" * (-len(self.bytes) % 4)
            content = struct.pack("<5I", 0x46546C67, 2, 28 + len(text) + len(body), len(text), 0x4E4F534A) + text
            content += struct.pack("<2I", len(body), 0x004E4942) + body
        else:
            self.json["buffers"][0]["uri"] = "data:application/octet-stream;base64," + base64.b64encode(self.bytes).decode()
            content = json.dumps(self.json).encode()
        with open(os.path.join(HERE, name.rsplit(".", 1)[0]), "wb") as f:
            f.write(content)


def square(b, indices="H", order=(0, 1, 2, 0, 2, 3)):
    b.primitive()["attributes"]["POSITION"] = b.accessor("f", SQUARE, "VEC3", 3)
    b.primitive()["attributes"]["NORMAL"] = b.accessor("b", [0, 0, 127] * 4, "VEC3", 3, normalized=True)
    b.primitive()["attributes"]["TEXCOORD_0"] = b.accessor("H", [0, 0, 65535, 0, 65535, 65535, 0, 65535], "VEC2", 2, normalized=True)
    b.primitive()["indices"] = b.accessor(indices, list(order), "SCALAR", 1)


def main():
    os.makedirs(HERE, exist_ok=True)
    b = Builder()
    square(b)
    b.json["images"] = [{"bufferView": b.view(png()), "mimeType": "image/png"}]
    b.json["textures"] = [{"source": 0, "sampler": 0}]
    b.json["samplers"] = [{"wrapS": 33071}]
    b.json["materials"] = [{"alphaMode": "MASK", "pbrMetallicRoughness": {"baseColorFactor": [1, 0.5, 0.2, 1], "baseColorTexture": {"index": 0}}}]
    b.primitive()["material"] = 0
    b.write("material.glb")
    b = Builder()
    square(b, "B", (0, 1, 3, 2))
    b.primitive()["mode"] = 5
    b.json["nodes"] = [{"children": [1, 2], "translation": [1, 2, 3]}, {"mesh": 0, "scale": [-1, 1, 1]},
                       {"mesh": 0, "rotation": [0, 0.6, 0, 0.8], "children": [3]}, {"mesh": 0, "matrix": [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 4, 0, 1]}]
    b.write("nodes.gltf")
    b = Builder()
    b.primitive()["attributes"]["POSITION"] = b.accessor("f", [0, 0, 0, 1, 0, 0, 0, 1, 0], "VEC3", 3)
    b.json.pop("scenes")
    b.write("bare.gltf")
    b = Builder()
    square(b, "I")
    b.json["accessors"][0]["sparse"] = {"count": 1}
    b.write("sparse.gltf")
    b = Builder()
    square(b)
    b.json["accessors"][0]["count"] = 100
    b.write("outside.glb")


main()
