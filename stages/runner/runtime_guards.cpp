// Maps the memory of other processes and determines to which parts of it this process could write. The
// result is reported in the entry's `guard`, for `carousel ps` and for fault injection, and as a warning in
// the process's log.
//
// Threads: the main thread. The entry's word belongs to this process and is not atomic: a concurrent reader
// reads either the old or the new value of the word.
#include <string_view>

#include "core/log.hpp"
#include "stages/runner/exit_note.hpp"
#include "stages/runner/runtime.hpp"

namespace carousel::stages {
namespace {

void warn_of_writable(const char* what, std::string_view name) {
    log::warning(
        "its {} {} is unguarded: its memory can't be mapped read-only, so a wild write of this stage "
        "can corrupt other stages",
        what, name);
}

}  // namespace

// Test hooks that write to an input must request write access here; the log shows the request.
device::access runtime::access_to_inputs(const description& d) const {
    const bool tears = hooks_.tear_at.has_value();
    if (!d.writable_inputs && !tears && !hooks_.inputs_writable) return device::access::read;
    log::warning("its inputs are unguarded: {}, so a wild write of this stage can corrupt other stages",
                 tears                    ? "CAROUSEL_TEST_TEAR writes to them"
                 : hooks_.inputs_writable ? "CAROUSEL_TEST_INPUTS_WRITABLE is set"
                                          : "it requests writable inputs");
    return device::access::write;
}

void runtime::publish_guard() {
    u32 guard_of = session::guards_of(inputs_, outputs_) | session::guards_of(sampled_inputs_, {});
    if (guard_ != shm::block_guard::off) guard_of |= shm::memory_guard::block_pages;
    if (guard_ == shm::block_guard::keys || guard_ == shm::block_guard::emulated)
        guard_of |= shm::memory_guard::block_keys;
    std::vector<const mapped_link*> of_others;
    for (const mapped_link& in : inputs_) of_others.push_back(&in);
    for (const mapped_link& in : sampled_inputs_) of_others.push_back(&in);
    if (previous_states_) of_others.push_back(&*previous_states_);
    for (const mapped_link* each : of_others) {
        const mapped_link& in = *each;
        guard(*in.memory, ring::wild_write_target::input, in.index, in.slot_bytes + in.canary_bytes,
              in.slots);
        if (!in.memory->read_only() && of_others_ == device::access::read)
            warn_of_writable("input", control().link[in.index].name);
    }
    for (const mapped_link& out : outputs_)
        guard(*out.memory, ring::wild_write_target::output, out.index, out.slot_bytes, out.slots);
    const shm::block_open open;
    entry().guard = guard_of;
}

void runtime::guard_asset(std::string_view name, const device::mapping& m) {
    if (m.read_only()) return;
    if (of_others_ == device::access::read) warn_of_writable("asset", name);
    const shm::block_open open;
    entry().guard |= shm::memory_guard::inputs_writable;
}

}  // namespace carousel::stages
