#pragma once
// Element types by their names ("u8", "bf16"), in the notations of the buffer protocol, DLPack and
// __cuda_array_interface__.

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace carousel::python {

// The structs of DLPack 1.1 (https://dmlc.github.io/dlpack/latest/c_api.html): with these structs a library
// can use the arrays of another library without a copy. Declared here because the packaged header (0.6) has
// no versions.

struct dl_device {
    std::int32_t type;  ///< dl_cpu, dl_cuda, ...
    std::int32_t id;
};
inline constexpr std::int32_t dl_cpu = 1, dl_cuda = 2, dl_cuda_host = 3;

struct dl_type {
    std::uint8_t code;  ///< dl_int, ...
    std::uint8_t bits;
    std::uint16_t lanes;
};
inline constexpr std::uint8_t dl_int = 0, dl_uint = 1, dl_float = 2, dl_bfloat = 4, dl_bool = 6,
                              dl_float8_e4m3fn = 10, dl_float8_e5m2 = 12;

struct dl_tensor {
    void* data;
    dl_device device;
    std::int32_t rank;
    dl_type type;
    std::int64_t* shape;
    std::int64_t* strides;  ///< in elements; null: dense
    std::uint64_t offset;   ///< bytes
};

/// The content of a capsule named "dltensor". The consumer renames the capsule to "used_dltensor" and finally
/// calls the deleter.
struct dl_managed {
    dl_tensor tensor;
    void* owner;
    void (*deleter)(dl_managed*);
};

struct dl_version {
    std::uint32_t major, minor;
};
inline constexpr std::uint64_t dl_read_only = 1;

/// In a capsule "dltensor_versioned".
struct dl_managed_versioned {
    dl_version version;
    void* owner;
    void (*deleter)(dl_managed_versioned*);
    std::uint64_t flags;
    dl_tensor tensor;
};

struct element_words {
    dl_type dl{};                ///< 0 bits: DLPack has no code for this type
    std::uint32_t dl_minor = 0;  ///< DLPack 1.x from which on it has the code; 0: also without a version
    char format = 0;             ///< code of the struct module; 0: there is none
    std::string numpy;           ///< "<f4"; "": none
};

/// Returns the notations for the element type `name`, which has `bytes` bytes.
inline element_words words_of(std::string_view name, std::size_t bytes) {
    element_words w;
    const std::size_t digit = name.find_first_of("0123456789");
    const std::string_view kind = name.substr(0, digit);
    const int log = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
    w.dl.bits = static_cast<std::uint8_t>(bytes * 8);
    w.dl.lanes = 1;
    const auto numpy = [&](char letter) {
        return std::string(bytes == 1 ? "|" : "<") + letter + std::to_string(bytes);
    };
    if (kind == "u") {
        w = {{dl_uint, w.dl.bits, 1}, 0, "BHIQ"[log], numpy('u')};
    } else if (kind == "i") {
        w = {{dl_int, w.dl.bits, 1}, 0, "bhiq"[log], numpy('i')};
    } else if (kind == "bool") {
        w = {{dl_bool, w.dl.bits, 1}, 0, '?', numpy('b')};
    } else if (kind == "bf") {
        w.dl.code = dl_bfloat;
    } else if (kind == "f" && bytes > 1) {
        w = {{dl_float, w.dl.bits, 1}, 0, " efd"[log], numpy('f')};
    } else if (name == "f8_e4m3" || name == "f8_e5m2") {
        w.dl.code = name == "f8_e4m3" ? dl_float8_e4m3fn : dl_float8_e5m2;
        w.dl_minor = 1;
    } else {
        w.dl.bits = 0;
    }
    return w;
}

}  // namespace carousel::python
