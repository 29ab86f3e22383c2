#pragma once
// Small glTF files for tests: arrays go into one buffer, all else is JSON that a test may damage before it
// writes the file.

#include <cstring>

#include "core/json.hpp"
#include "core/types.hpp"
#include "tests/support/scratch_folder.hpp"

namespace carousel::test {

struct gltf_builder {
    nlohmann::json root = {{"asset", {{"version", "2.0"}}},
                           {"scene", 0},
                           {"scenes", {{{"nodes", {0}}}}},
                           {"nodes", {{{"mesh", 0}}}},
                           {"meshes", {{{"primitives", {{{"attributes", nlohmann::json::object()}}}}}}}};
    std::string bytes;

    nlohmann::json& primitive() { return root["meshes"][0]["primitives"][0]; }

    /// Appends a view of the buffer and returns its number.
    std::size_t view(const std::string& content) {
        bytes.resize((bytes.size() + 3) / 4 * 4);
        root["bufferViews"].push_back(
            {{"buffer", 0}, {"byteOffset", bytes.size()}, {"byteLength", content.size()}});
        bytes += content;
        return root["bufferViews"].size() - 1;
    }
    /// Appends an accessor over values of type T and returns its number.
    template <typename T>
    std::size_t accessor(const std::vector<T>& values, const char* type, u32 component, u32 components) {
        std::string content(values.size() * sizeof(T), '\0');
        std::memcpy(content.data(), values.data(), content.size());
        const std::size_t at = view(content);
        root["accessors"].push_back({{"bufferView", at},
                                     {"componentType", component},
                                     {"type", type},
                                     {"count", values.size() / components}});
        return root["accessors"].size() - 1;
    }
    void positions(const std::vector<f32>& xyz) {
        primitive()["attributes"]["POSITION"] = accessor(xyz, "VEC3", 5126, 3);
    }
    void normals(const std::vector<f32>& xyz) {
        primitive()["attributes"]["NORMAL"] = accessor(xyz, "VEC3", 5126, 3);
    }
    void coordinates(const std::vector<f32>& uv) {
        primitive()["attributes"]["TEXCOORD_0"] = accessor(uv, "VEC2", 5126, 2);
    }
    template <typename T>
    void indices(const std::vector<T>& values) {
        primitive()["indices"] =
            accessor(values, "SCALAR", sizeof(T) == 1 ? 5121 : (sizeof(T) == 2 ? 5123 : 5125), 1);
    }
    /// A square in the plane z = 0, seen from +z, with texture coordinates.
    void square() {
        positions({-1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 1, 0});
        normals({0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1});
        coordinates({0, 1, 1, 1, 1, 0, 0, 0});
        indices<u16>({0, 1, 2, 0, 2, 3});
    }

    static std::string base64(const std::string& in) {
        static const char* const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        std::string out;
        for (std::size_t i = 0; i < in.size(); i += 3) {
            u32 bits = 0;
            for (std::size_t k = 0; k < 3; ++k)
                bits = bits << 8U | (i + k < in.size() ? static_cast<u8>(in[i + k]) : 0U);
            for (std::size_t k = 0; k < 4; ++k)
                out += i + k <= in.size() ? letters[bits >> (18 - 6 * k) & 63U] : '=';
        }
        return out;
    }

    /// A .gltf with its buffer as a data: URI. Returns the path.
    [[nodiscard]] std::string write(const scratch_folder& folder, const std::string& name = "m.gltf") const {
        nlohmann::json j = root;
        if (!j.contains("buffers"))
            j["buffers"] = {{{"byteLength", bytes.size()},
                             {"uri", "data:application/octet-stream;base64," + base64(bytes)}}};
        return folder.write(name, j.dump());
    }
    /// The same as a .glb.
    [[nodiscard]] std::string binary() const {
        nlohmann::json j = root;
        j["buffers"] = {{{"byteLength", bytes.size()}}};
        std::string text = j.dump(), content = bytes;
        text.resize((text.size() + 3) / 4 * 4, ' ');
        content.resize((content.size() + 3) / 4 * 4);
        const auto words = [](std::initializer_list<std::size_t> all) {
            std::string out;
            for (const std::size_t w : all) {
                const u32 word = static_cast<u32>(w);
                out.append(reinterpret_cast<const char*>(&word), sizeof word);
            }
            return out;
        };
        return words({0x46546C67, 2, 28 + text.size() + content.size(), text.size(), 0x4E4F534A}) + text +
               words({content.size(), 0x004E4942}) + content;
    }
};

}  // namespace carousel::test
