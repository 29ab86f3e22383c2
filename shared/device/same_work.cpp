#include "device/same_work.hpp"

#include <fmt/format.h>

#include <cstring>

#include "core/errors.hpp"

#if CAROUSEL_WITH_CUDA
#include "device/cuda/launch.hpp"
#endif

namespace carousel::device {
namespace {

constexpr std::size_t alignment = 16;

std::string in_words(const char* name, const kernel_launch& k) {
    return fmt::format("{} ({} x {} x {} blocks of {} x {} x {} threads)", name, k.blocks[0], k.blocks[1],
                       k.blocks[2], k.threads[0], k.threads[1], k.threads[2]);
}

[[noreturn]] void differ(const std::string& what) {
    throw error(exit_code::stage_exception,
                "its work differs from the first frame's, although configure() declares same_work: " + what +
                    "; remove same_work from the description, or launch the same work for every frame");
}

bool alike(const kernel_launch& a, const kernel_launch& b) {
    if (a.kernel != b.kernel || a.blocks != b.blocks || a.threads != b.threads) return false;
    if (a.shared_bytes != b.shared_bytes || a.overlaps != b.overlaps || a.count != b.count) return false;
    for (u32 k = 0; k < a.count; ++k)
        if (a.arguments[k].bytes != b.arguments[k].bytes) return false;
    return true;
}

launch_list::note note_of(const kernel_launch& k) {
    launch_list::note n;
    n.name = k.name;
    n.launch = k;
    std::size_t end = 0;
    const auto room = [](u32 bytes) { return (bytes + alignment - 1) / alignment * alignment; };
    for (u32 i = 0; i < k.count; ++i) end += room(k.arguments[i].bytes);
    n.bytes.resize(end);
    end = 0;
    for (u32 i = 0; i < k.count; ++i) {
        n.arguments.push_back(n.bytes.data() + end);  // the pointer stays valid when `n` is moved
        n.launch.arguments[i].at = nullptr;
        end += room(k.arguments[i].bytes);
    }
    return n;
}

bool take_arguments(const kernel_launch& from, launch_list::note& to) {
    bool changed = false;
    for (u32 i = 0; i < from.count; ++i) {
        if (std::memcmp(to.arguments[i], from.arguments[i].at, from.arguments[i].bytes) == 0) continue;
        std::memcpy(to.arguments[i], from.arguments[i].at, from.arguments[i].bytes);
        changed = true;
    }
    return changed;
}

}  // namespace

void launch_list::begin() {
    next_ = 0;
    ++frames_;
}

void launch_list::add(const kernel_launch& k) {
    if (first()) {
        notes_.push_back(note_of(k));
        (void)take_arguments(k, notes_.back());
        return;
    }
    if (next_ == notes_.size())
        differ(fmt::format("{} is launched after the last of {}", in_words(k.name, k), notes_.size()));
    note& there = notes_[next_++];
    if (!alike(k, there.launch))
        differ(fmt::format("launch {} is {}, and was {}", next_, in_words(k.name, k),
                           in_words(there.name.c_str(), there.launch)));
    there.changed = take_arguments(k, there) || there.changed;
}

void launch_list::end() {
    if (first() || next_ == notes_.size()) return;
    differ(fmt::format("{} launches, and there were {}", next_, notes_.size()));
}

void launch_list::forget() {
    if (first()) notes_.clear();
    if (frames_ > 0) --frames_;
}

std::unique_ptr<same_work> make_same_work(queue& on) {
#if CAROUSEL_WITH_CUDA
    if (on.kind() == device_kind::cuda) return cuda::make_graph(on);
#endif
    (void)on;
    return nullptr;
}

}  // namespace carousel::device
