#pragma once
// Element types by their names ("u8", "bf16"), in the notations of the buffer protocol, DLPack and
// __cuda_array_interface__.

#include <charconv>
#include <string>
#include <string_view>

#include "stages/python/dlpack.hpp"

namespace carousel::python {

struct element_words {
    dl_type dl{};
    char format = 0;    ///< code of the struct module; 0: there is none
    std::string numpy;  ///< "<f4"; "": none
};

/// For an element of `bytes` bytes.
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
        w = {{dl_uint, w.dl.bits, 1}, "BHIQ"[log], numpy('u')};
    } else if (kind == "i") {
        w = {{dl_int, w.dl.bits, 1}, "bhiq"[log], numpy('i')};
    } else if (kind == "bool") {
        w = {{dl_bool, w.dl.bits, 1}, '?', numpy('b')};
    } else if (kind == "bf") {
        w.dl.code = dl_bfloat;
    } else if (kind == "f" && bytes > 1) {
        w = {{dl_float, w.dl.bits, 1}, " efd"[log], numpy('f')};
    } else {
        w.dl.bits = 0;  // DLPack 1.0 has no code for this type
    }
    return w;
}

}  // namespace carousel::python
