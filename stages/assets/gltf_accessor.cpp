#include "stages/assets/gltf_accessor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "stages/sdk/configuration.hpp"

namespace carousel::stages {
namespace {

template <typename T>
T load(std::span<const std::byte> bytes, u64 at) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

u32 components_of(std::string_view type) {
    if (type == "MAT4") return 16;
    return type == "SCALAR" ? 1 : static_cast<u32>(type.back() - '0');
}

/// Limit of the elements of an accessor that has no buffer view: a few bytes of a file may name any number.
constexpr u64 most_zeros = u64{1} << 24U;

}  // namespace

gltf_accessor::gltf_accessor(gltf_document& document, const gltf_value& from, const char* key,
                             std::initializer_list<std::string_view> types)
    : document_(&document) {
    const gltf_value a = document.referred(from, key, "accessors");
    place_ = a.place();
    key_ = key;
    const std::string type = a.text_or("type", "");
    if (std::find(types.begin(), types.end(), type) == types.end()) {
        a.refuse(fmt::format("\"type\" = \"{}\": expected {} for \"{}\"", type.substr(0, 20),
                             fmt::join(types, " or "), key));
    }
    components_ = components_of(type);
    type_ = static_cast<component>(a.integer("componentType", 5120, 5126));
    switch (type_) {
        case component::i8:
        case component::u8:
            size_ = 1;
            break;
        case component::i16:
        case component::u16:
            size_ = 2;
            break;
        case component::u32:
        case component::f32:
            size_ = 4;
            break;
        default:
            a.refuse(fmt::format("\"componentType\" = {}: there is no such type", static_cast<u64>(type_)));
    }
    normalized_ = a.flag_or("normalized", false);
    count_ = a.integer("count", 1, u64{1} << 31U);
    const auto sparse = a.find("sparse");
    if (a.has("bufferView") || !sparse) {
        open_view(document, a);
    } else if (count_ > most_zeros) {
        a.refuse(fmt::format("it has {} elements and no buffer view; at most {} are supported", count_,
                             most_zeros));
    }
    if (sparse) apply_sparse(document, a, *sparse);
}

void gltf_accessor::open_view(gltf_document& document, const gltf_value& a) {
    const gltf_value view = document.referred(a, "bufferView", "bufferViews");
    const std::span<const std::byte> whole = document.view(view);
    const u64 element = u64{size_} * components_;
    stride_ = view.integer_or("byteStride", element, 1, 252);
    if (stride_ < element) {
        view.refuse(
            fmt::format("\"byteStride\" = {} is too small: an element has {} bytes", stride_, element));
    }
    const u64 offset = a.integer_or("byteOffset", 0, 0, u64{1} << 40U);
    const u64 end = offset + stride_ * (count_ - 1) + element;
    if (end > whole.size()) {
        a.refuse(fmt::format("its {} elements end at byte {} of a buffer view of {} bytes", count_, end,
                             whole.size()));
    }
    bytes_ = whole.subspan(offset);
}

void gltf_accessor::apply_sparse(gltf_document& document, const gltf_value& a, const gltf_value& sparse) {
    const u64 element = u64{size_} * components_, changed = sparse.integer("count", 1, count_);
    document.charge(place_, count_ * element);
    std::vector<std::byte> all(count_ * element);
    for (u64 i = 0; !bytes_.empty() && i < count_; ++i)
        std::memcpy(all.data() + i * element, bytes_.data() + i * stride_, element);
    const auto part = [&](const char* key, u64 size) {
        const gltf_value where = sparse.member(key);
        const auto whole = document.view(document.referred(where, "bufferView", "bufferViews"));
        const u64 offset = where.integer_or("byteOffset", 0, 0, u64{1} << 40U);
        if (offset + size * changed > whole.size())
            where.refuse(fmt::format("its {} elements end at byte {} of a buffer view of {} bytes", changed,
                                     offset + size * changed, whole.size()));
        return whole.subspan(offset);
    };
    const u64 kind = sparse.member("indices").integer("componentType", 5121, 5125);
    if (kind != 5121 && kind != 5123 && kind != 5125)
        sparse.refuse(fmt::format("indices: \"componentType\" = {}: expected 5121, 5123 or 5125", kind));
    const u64 index_size = kind == 5121 ? 1 : (kind == 5123 ? 2 : 4);
    const auto places = part("indices", index_size), values = part("values", element);
    for (u64 i = 0; i < changed; ++i) {
        u32 at = 0;  // little-endian: the lower bytes come first
        std::memcpy(&at, places.data() + i * index_size, index_size);
        if (at >= count_) a.refuse(fmt::format("its sparse part replaces element {} of {}", at, count_));
        std::memcpy(all.data() + at * element, values.data() + i * element, element);
    }
    own_ = std::move(all);
    bytes_ = own_;
    stride_ = element;
}

f64 gltf_accessor::value(u64 i, u32 k) const {
    const u64 at = i * stride_ + u64{k} * size_;
    switch (type_) {
        case component::i8:
            return normalized_ ? std::max(load<i8>(bytes_, at) / 127.0, -1.0) : load<i8>(bytes_, at);
        case component::u8:
            return load<u8>(bytes_, at) / (normalized_ ? 255.0 : 1.0);
        case component::i16:
            return normalized_ ? std::max(load<i16>(bytes_, at) / 32767.0, -1.0) : load<i16>(bytes_, at);
        case component::u16:
            return load<u16>(bytes_, at) / (normalized_ ? 65535.0 : 1.0);
        case component::u32:
            return load<u32>(bytes_, at);
        default:
            return load<f32>(bytes_, at);
    }
}

u32 gltf_accessor::index(u64 i) const {
    const u64 at = i * stride_;
    switch (type_) {
        case component::u8:
            return load<u8>(bytes_, at);
        case component::u16:
            return load<u16>(bytes_, at);
        default:
            return load<u32>(bytes_, at);
    }
}

std::vector<f32> gltf_accessor::values() const {
    document_->charge(place_, count_ * components_ * sizeof(f32));
    std::vector<f32> out(count_ * components_);
    for (u64 i = 0; i < count_; ++i) {
        for (u32 k = 0; k < components_; ++k) {
            const f64 x = value(i, k);
            if (!std::isfinite(x))
                throw settings_error("mesh", fmt::format("{}: {} {} is not finite", place_, key_, i));
            out[i * components_ + k] = static_cast<f32>(x);
        }
    }
    return out;
}

void gltf_accessor::require_indices(const gltf_value& from) const {
    if (type_ != component::u8 && type_ != component::u16 && type_ != component::u32) {
        from.refuse("its indices are not whole numbers of 8, 16 or 32 bits without a sign");
    }
}

}  // namespace carousel::stages
