#include <carousel/hash.hpp>

#include <fmt/format.h>

namespace carousel {
namespace {

/// Describes a plane as equidistant rows; a dense plane is one row. Throws config_error if its strides allow
/// no such rows.
kernels::hash_args rows_of(const ring::plane& p) {
    if (p.bytes() == 0) return {};
    u64 dense = ring::element_bytes(p.type);
    std::size_t outer = p.shape.size();
    const auto stride = [&](std::size_t d) { return p.strides.empty() ? 0 : p.strides[d]; };
    while (outer > 0 && (p.strides.empty() || p.shape[outer - 1] == 1 || stride(outer - 1) == dense))
        dense *= p.shape[--outer];
    kernels::hash_args out;
    out.row_bytes = dense;
    for (std::size_t d = outer; d-- > 0;) {
        if (p.shape[d] == 1) continue;
        if (out.rows == 1) out.pitch = stride(d);
        if (stride(d) != out.pitch * out.rows)
            throw config_error(
                fmt::format("the plane \"{}\" can't be hashed: its rows are not at equal distances", p.name));
        out.rows *= p.shape[d];
    }
    return out;
}

}  // namespace

plane_hasher::plane_hasher(environment& env)
    : values_(env.context().allocate_host(u64{env.in_flight()} * sizeof(u64))) {
    if (const u64 bytes = kernels::hash_scratch_bytes(env.context().kind()); bytes > 0)
        scratch_ = env.context().allocate(bytes);
}

void plane_hasher::enqueue(frame& f, std::string_view plane, std::size_t input) {
    const input_payload in = f.input(input);
    const ring::plane& p = detail::find_plane(in.format(), plane, nullptr);
    kernels::hash_args args = rows_of(in.in_use(plane));
    args.data = in.slot() + p.offset;
    if (scratch_) args.scratch = scratch_->data(), args.scratch_bytes = scratch_->bytes();
    args.out = reinterpret_cast<u64*>(values_->data()) + f.lane();
    kernels::hash_plane(f.queue(), args);
}

u64 plane_hasher::value(const frame& f) const noexcept {
    return reinterpret_cast<const u64*>(values_->host_data())[f.lane()];
}

void plane_hasher::set_hash(frame& f) const noexcept {
    if (f.tombstone_reason().empty()) f.set_hash(value(f), plane_hash_name);
}

}  // namespace carousel
