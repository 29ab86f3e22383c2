#include "stages/assets/gltf_document.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>

#include "core/errors.hpp"
#include "core/json_text.hpp"
#include "core/types.hpp"
#include "core/user_input.hpp"
#include "stages/assets/gltf_compression.hpp"

namespace carousel::stages {
namespace {

/// Returns the six bits that a base64 character represents, or -1.
int six_bits(char c) noexcept {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : (c == '/' ? 63 : -1);
}

int hexadecimal(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

constexpr u32 glb_magic = 0x46546C67, chunk_json = 0x4E4F534A, chunk_bin = 0x004E4942;

std::vector<std::byte> read_bytes(const gltf_value& from, const std::filesystem::path& file) {
    struct stat s {};
    if (stat(file.c_str(), &s) != 0) {
        from.refuse(fmt::format("can't read {}: {}", file.string(), errno_text(errno)));
    }
    if (!S_ISREG(s.st_mode)) {
        from.refuse(fmt::format("can't read {}: not a file", file.string()));
    }
    std::vector<std::byte> bytes(static_cast<std::size_t>(s.st_size));
    std::ifstream in(file, std::ios::binary);
    if (!in || (s.st_size > 0 && !in.read(reinterpret_cast<char*>(bytes.data()), s.st_size))) {
        from.refuse(fmt::format("can't read {}: {}", file.string(), errno_text(errno)));
    }
    return bytes;
}

}  // namespace

bool is_data_uri(std::string_view uri) noexcept { return uri.starts_with("data:"); }

std::optional<std::vector<std::byte>> decode_data_uri(std::string_view uri) {
    const auto comma = uri.find(',');
    if (comma == std::string_view::npos || !uri.substr(0, comma).ends_with(";base64")) {
        return std::nullopt;
    }
    std::string_view text = uri.substr(comma + 1);
    for (int padding = 0; padding < 2 && text.ends_with('='); ++padding) {
        text.remove_suffix(1);
    }
    if (text.size() % 4 == 1) {
        return std::nullopt;
    }
    std::vector<std::byte> out;
    out.reserve(text.size() / 4 * 3 + 2);
    u32 bits = 0;
    int bit_count = 0;
    for (const char c : text) {
        const int six = six_bits(c);
        if (six < 0) {
            return std::nullopt;
        }
        bits = bits << 6U | static_cast<u32>(six);
        bit_count += 6;
        if (bit_count >= 8) {
            bit_count -= 8;
            out.push_back(static_cast<std::byte>(bits >> bit_count));
            bits &= (1U << bit_count) - 1U;
        }
    }
    return out;
}

std::string decode_percent(std::string_view uri) {
    std::string out;
    for (std::size_t i = 0; i < uri.size(); ++i) {
        if (uri[i] == '%' && i + 2 < uri.size() && hexadecimal(uri[i + 1]) >= 0 &&
            hexadecimal(uri[i + 2]) >= 0) {
            out += static_cast<char>(hexadecimal(uri[i + 1]) * 16 + hexadecimal(uri[i + 2]));
            i += 2;
        } else {
            out += uri[i];
        }
    }
    return out;
}

texture_transform texture_transform_of(const gltf_value& texture_info, u64& texture_set) {
    texture_transform out;
    const auto given = texture_info.extension("KHR_texture_transform");
    if (!given) {
        return out;
    }
    f64 offset[2] = {0, 0}, scale[2] = {1, 1};
    given->numbers("offset", offset);
    given->numbers("scale", scale);
    texture_set = given->integer_or("texCoord", texture_set, 0, 31);
    // A positive angle rotates counter-clockwise as displayed, with v pointing down; Blender and three.js
    // use the same interpretation.
    const f64 angle = given->number_or("rotation", 0), c = std::cos(angle), s = std::sin(angle);
    const f64 m[6] = {c * scale[0], s * scale[1], offset[0], -s * scale[0], c * scale[1], offset[1]};
    std::copy_n(m, 6, out.m);
    return out;
}

gltf_document::gltf_document(const std::filesystem::path& path, u64 most_bytes)
    : path_(path), most_bytes_(most_bytes) {
    read_container(read_bytes(root(), path));
    check_head();
    buffers_.resize(root().count("buffers"));
}

void gltf_document::charge(const std::string& place, u64 bytes) {
    if (bytes > most_bytes_ - charged_bytes_)
        throw gltf_too_large(
            "mesh",
            fmt::format("{}: with it, the file expands to more than the {:.1f} MiB of memory that it may "
                        "use (data counts once for each part that names it); export a smaller file, or "
                        "free memory",
                        place, static_cast<f64>(most_bytes_) / 1048576.0));
    charged_bytes_ += bytes;
}

void gltf_document::read_container(std::vector<std::byte> bytes) {
    const auto word = [&](u64 at) {
        u32 w = 0;
        std::memcpy(&w, bytes.data() + at, sizeof w);
        return w;
    };
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (bytes.size() >= 4 && word(0) == glb_magic) {
        if (bytes.size() >= 8 && word(4) == 1) {
            refuse_first_version();
        }
        if (bytes.size() < 20 || word(4) != 2 || word(8) > bytes.size() || word(16) != chunk_json ||
            u64{word(12)} + 20 > word(8)) {
            root().refuse(
                "not a whole glTF 2.0 binary file (.glb): its header names another version, an invalid "
                "chunk, or more bytes than the file has");
        }
        const u64 length = word(8), after = 20 + u64{word(12)};
        text = text.substr(20, word(12));
        if (after + 8 <= length && word(after + 4) == chunk_bin) {
            if (after + 8 + word(after) > length) {
                root().refuse(fmt::format("its binary chunk should have {} bytes, but the file ends earlier",
                                          word(after)));
            }
            const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(after + 8);
            chunk_.assign(first, first + static_cast<std::ptrdiff_t>(word(after)));
        }
    }
    try {
        json_ = parse_json(text, json_channel::asset);
    } catch (const nlohmann::json::exception& e) {
        root().refuse(fmt::format("not a readable glTF file: {}", std::string_view(e.what()).substr(0, 200)));
    }
    if (!json_.is_object()) {
        root().refuse("not a glTF file: its JSON is not an object");
    }
}

void gltf_document::refuse_first_version() const {
    root().refuse(
        "glTF 1.0, which is a different format: only glTF 2.0 can be read; convert it, e.g. `gltf-pipeline "
        "-i OLD.gltf -o NEW.gltf`");
}

bool gltf_document::is_supported(std::string_view extension) {
    static constexpr std::string_view known[] = {
        "EXT_mesh_gpu_instancing",    "KHR_lights_punctual",
        "KHR_materials_clearcoat",    "KHR_materials_emissive_strength",
        "KHR_materials_ior",          "KHR_materials_specular",
        "KHR_materials_transmission", "KHR_materials_unlit",
        "KHR_mesh_quantization",      "KHR_texture_transform"};
    return std::find(std::begin(known), std::end(known), extension) != std::end(known) ||
           (extension == "EXT_meshopt_compression" && gltf_compression::has_meshopt) ||
           (extension == "KHR_draco_mesh_compression" && gltf_compression::has_draco);
}

void gltf_document::check_head() const {
    const gltf_value asset = root().member("asset");
    // Only a file of version 1.0 may omit the version, so a missing version means 1.0. Exporters for version
    // 1.0 have written the version as a number.
    const std::string version = asset.is_number("version") ? fmt::format("{}", asset.number_or("version", 0))
                                                           : asset.text_or("version", "1.0");
    if (version == "1") refuse_first_version();
    if (version.starts_with("1.")) {
        refuse_first_version();
    }
    if (!version.starts_with("2.")) {
        root().refuse(fmt::format("asset.version = \"{}\": only glTF 2.x can be read; convert it", version));
    }
    for (u64 i = 0; i < root().count("extensionsRequired"); ++i) {
        const std::string name = root().text_at("extensionsRequired", i);
        if (const char* library = gltf_compression::missing_library(name))
            root().refuse(
                fmt::format("it is compressed by {}, and these programs were built without {}; build them "
                            "with this library, or export the file without compression",
                            name, library));
        if (!is_supported(name)) {
            root().refuse(fmt::format(
                "it requires the extension {}, which is not supported; export the file without it",
                name.substr(0, 80)));
        }
    }
}

gltf_value gltf_document::referred(const gltf_value& from, const char* key, const char* array) const {
    const u64 there = root().count(array);
    const u64 i = from.integer(key, 0, UINT32_MAX);
    if (i >= there) {
        from.refuse(
            fmt::format("\"{}\" names number {} of the {}, but the file has {}", key, i, array, there));
    }
    return root().at(array, i);
}

const std::vector<std::byte>& gltf_document::buffer(u64 i) {
    if (buffers_[i]) {
        return *buffers_[i];
    }
    const gltf_value b = root().at("buffers", i);
    const u64 length = b.integer("byteLength", 1, u64{1} << 40U);
    const std::string uri = b.text_or("uri", "");
    std::vector<std::byte> bytes;
    if (uri.empty()) {
        if (i > 0 || chunk_.empty()) {
            b.refuse("it has no uri, and the file has no binary chunk for it");
        }
        bytes = chunk_;
    } else if (is_data_uri(uri)) {
        auto decoded = decode_data_uri(uri);
        if (!decoded) {
            b.refuse("its data: uri is not valid base64");
        }
        bytes = std::move(*decoded);
    } else {
        bytes = read_bytes(b, sibling_path(b, uri));
    }
    charge(b.place(), bytes.size());
    if (bytes.size() < length) {
        b.refuse(fmt::format("it should have {} bytes, but there are {}", length, bytes.size()));
    }
    bytes.resize(length);
    buffers_[i] = std::move(bytes);
    return *buffers_[i];
}

std::span<const std::byte> gltf_document::raw_view(const gltf_value& part) {
    (void)referred(part, "buffer", "buffers");
    const std::span<const std::byte> whole = buffer(part.integer("buffer", 0, UINT32_MAX));
    const u64 offset = part.integer_or("byteOffset", 0, 0, u64{1} << 40U),
              length = part.integer("byteLength", 1, u64{1} << 40U);
    if (offset + length > whole.size()) {
        part.refuse(fmt::format("bytes {} to {} lie outside its buffer of {} bytes", offset, offset + length,
                                whole.size()));
    }
    return whole.subspan(offset, length);
}

std::span<const std::byte> gltf_document::view(const gltf_value& buffer_view) {
    const auto compressed = buffer_view.extension("EXT_meshopt_compression");
    // Without the library, a file that does not require it has an uncompressed view as well.
    if (!compressed || !gltf_compression::has_meshopt) return raw_view(buffer_view);
    const auto known = decompressed_.find(buffer_view.place());
    if (known != decompressed_.end()) return known->second;
    const u64 named =
        compressed->integer("count", 1, u64{1} << 31U) * compressed->integer("byteStride", 1, 256);
    charge(compressed->place(), std::min(named, gltf_compression::most_decompressed));
    auto bytes = gltf_compression::decompress_view(*compressed, raw_view(*compressed));
    return decompressed_[buffer_view.place()] = std::move(bytes);
}

picture gltf_document::image(const gltf_value& image) {
    picture p;
    p.name = image.place();
    const std::string uri = image.text_or("uri", "");
    if (uri.empty()) {
        const auto bytes = view(referred(image, "bufferView", "bufferViews"));
        charge(image.place(), bytes.size());
        p.bytes.assign(bytes.begin(), bytes.end());
    } else if (is_data_uri(uri)) {
        auto decoded = decode_data_uri(uri);
        if (!decoded || decoded->empty()) {
            image.refuse("its data: uri is not valid base64");
        }
        p.bytes = std::move(*decoded);
    } else {
        p.file = sibling_path(image, uri);
    }
    return p;
}

std::filesystem::path gltf_document::sibling_path(const gltf_value& from, const std::string& uri) const {
    const std::string shown = uri.substr(0, 120);
    const std::string name = decode_percent(uri);
    if (name.find('\0') != std::string::npos ||
        name.substr(0, name.find('/')).find(':') != std::string::npos) {
        from.refuse(fmt::format(
            "\"{}\" is not the name of a file in this folder; other locations are not read", shown));
    }
    const auto folder = std::filesystem::weakly_canonical(absolute_path(path_).parent_path());
    std::error_code failed;
    const auto file = std::filesystem::weakly_canonical(folder / name, failed);
    const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
    if (failed || end != folder.end()) {
        from.refuse(fmt::format("\"{}\" leads out of the folder {}; files must lie in it or below", shown,
                                folder.string()));
    }
    return file;
}

}  // namespace carousel::stages
