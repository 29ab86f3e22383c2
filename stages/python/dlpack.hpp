#pragma once
// The structs of DLPack 1.0 (https://dmlc.github.io/dlpack/latest/c_api.html): allow one library to use
// another library's arrays without a copy. Declared here because the packaged header (0.6) has no versions.

#include <cstdint>

namespace carousel::python {

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
inline constexpr std::uint8_t dl_int = 0, dl_uint = 1, dl_float = 2, dl_bfloat = 4, dl_bool = 6;

struct dl_tensor {
    void* data;
    dl_device device;
    std::int32_t rank;
    dl_type type;
    std::int64_t* shape;
    std::int64_t* strides;  ///< in elements; null: dense
    std::uint64_t offset;   ///< bytes
};

/// In a capsule "dltensor". Its consumer renames that to "used_dltensor" and finally calls the deleter.
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

}  // namespace carousel::python
