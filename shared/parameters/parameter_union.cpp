#include "parameters/parameter_union.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "core/errors.hpp"
#include "parameters/parameter_range.hpp"

namespace carousel::ring {

parameter_schema union_of(const parameter_schema& a, const parameter_schema& b) {
    if (a.type != b.type) throw config_error(fmt::format("the types {} and {} differ", a.type, b.type));
    parameter_schema both = a;
    both.bytes = std::max(a.bytes, b.bytes);
    for (const parameter& p : b.fields) {
        const parameter* known = a.find(p.name);
        if (known == nullptr)
            both.fields.push_back(p);
        else if (*known != p)
            throw config_error(
                fmt::format("another version of the type: they describe \"{}\" in different ways", p.name));
    }
    both.check();
    return both;
}

bool includes(const parameter_schema& whole, const parameter_schema& part) noexcept {
    return whole.type == part.type && whole.bytes >= part.bytes &&
           std::all_of(part.fields.begin(), part.fields.end(), [&](const parameter& p) {
               const parameter* same = whole.find(p.name);
               return same != nullptr && *same == p;
           });
}

void copy_fields(const parameter_schema& schema, std::span<const std::byte> from,
                 std::span<std::byte> to) noexcept {
    for (const parameter& p : schema.fields) {
        const std::size_t bytes = std::size_t{p.count} * detail::element_size;
        if (detail::lies_within(p, from.size()) && detail::lies_within(p, to.size()))
            std::memcpy(to.data() + p.offset, from.data() + p.offset, bytes);
    }
}

}  // namespace carousel::ring
