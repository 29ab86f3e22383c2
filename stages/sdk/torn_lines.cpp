#include "stages/sdk/torn_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/clock.hpp"
#include "core/log.hpp"

namespace carousel {

bool differs_now(const device::mapping& of, const device::status_word* at,
                 const device::status_word& expected) noexcept {
    if (of.host_data() == nullptr) return false;
    const std::byte* word = of.host_data() + (reinterpret_cast<const std::byte*>(at) - of.data());
    const auto* now = reinterpret_cast<const volatile device::status_word*>(word);
    return now->ring_sequence != expected.ring_sequence || now->epoch != expected.epoch ||
           now->state != expected.state;
}

void torn_lines::report(u64 ring_sequence, u32 words, std::span<const torn_input> inputs) {
    unlogged_ += words;
    const u64 now = now_ns();
    if (now < next_ns_) return;
    next_ns_ = now + ns_per_s;
    const std::string count =
        unlogged_ > words ? fmt::format(" ({} such words since the previous line)", unlogged_) : "";
    unlogged_ = 0;
    const bool known = std::any_of(inputs.begin(), inputs.end(), [](const auto& i) { return i.differs; });
    std::string all;
    for (const torn_input& i : inputs) {
        const std::string name = fmt::format("the ring {}, which {} fills", i.ring, i.maker);
        if (known && i.differs)
            log::error("frame {} is torn: its status word in {}, changed under its lease{}", ring_sequence,
                       name, count);
        all += (all.empty() ? "" : ", or in ") + name;
    }
    if (!known)
        log::error("frame {} is torn: its status word in {}, changed under its lease{}", ring_sequence, all,
                   count);
}

}  // namespace carousel
