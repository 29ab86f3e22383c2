// A ring of frames between processes. The ring's status words are either anonymous, as in the textbooks, or
// identify their owner; the producer is repeatedly killed in the middle of a write.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "../program.hpp"

namespace {

using lesson::end_of;
using lesson::now_us;
using lesson::start;

constexpr unsigned slots = 4, words = 1 << 18, kills = 20, naive_frames = 20, dies_at = 5, seed = 6;
enum : uint64_t { empty, writing, ready };

/// State, owner's epoch, and frame: 8, 24 and 32 bits.
uint64_t word_of(uint64_t state, unsigned epoch, unsigned frame) {
    return state | uint64_t{epoch} << 8 | uint64_t{frame} << 32;
}
uint64_t state_of(uint64_t word) { return word & 0xFF; }
unsigned epoch_of(uint64_t word) { return word >> 8 & 0xFFFFFF; }
unsigned frame_of(uint64_t word) { return static_cast<unsigned>(word >> 32); }

struct slot {
    alignas(64) std::atomic<uint64_t> word;
    alignas(64) volatile unsigned data[words];
};
struct ring {
    std::atomic<unsigned> next;      // in the anonymous ring: the number of the frame to claim next
    std::atomic<unsigned> consumed;  // number of frames read; stored before a frame's slot is freed
    std::atomic<unsigned> last;      // the producer may stop after this frame
    std::atomic<unsigned> lost, repeated, torn;
    slot all[slots];
};
ring* shared;

void clear() { std::memset(static_cast<void*>(shared), 0, sizeof *shared); }
/// Returns false if the word does not reach this state within `seconds`.
bool wait_for(const std::atomic<uint64_t>& word, uint64_t state, double seconds) {
    for (const double end = now_us() + seconds * 1e6; now_us() < end; sched_yield())
        if (state_of(word.load(std::memory_order_acquire)) == state) return true;
    return false;
}
/// `half`: the process is killed in the middle of the write.
void write(slot& s, unsigned frame, bool half = false) {
    for (unsigned k = 0; k < words; ++k) {
        if (half && k == words / 2) kill(getpid(), SIGKILL);
        s.data[k] = frame;
    }
}
bool is_whole(const slot& s, unsigned frame) {
    for (const volatile unsigned& w : s.data)
        if (w != frame) return false;
    return true;
}

/// As in the textbooks: a slot is EMPTY, WRITING or READY, and has no owner. `resets`: a new producer clears
/// the ring.
int anonymous_producer(unsigned dies, bool resets) {
    if (resets)
        for (slot& s : shared->all) s.word = empty;
    for (unsigned frame; (frame = shared->next.fetch_add(1)) < naive_frames;) {
        slot& s = shared->all[frame % slots];
        if (!wait_for(s.word, empty, 1)) return 1;
        s.word = writing;
        write(s, frame, frame == dies);
        s.word.store(ready, std::memory_order_release);
    }
    return 0;
}
void anonymous(const char* name, bool resets) {
    clear();
    const pid_t first = start([] { return anonymous_producer(slots, false); });
    unsigned got = 0, wrong = 0;
    // Frame 0 is read, so its slot is free again; the producer dies while it writes frame 4 into that slot.
    for (unsigned at = 0; wait_for(shared->all[at % slots].word, ready, 0.5); ++at) {
        slot& s = shared->all[at % slots];
        const unsigned frame = s.data[0];
        ++(is_whole(s, frame) ? got : wrong);
        s.word.store(empty, std::memory_order_release);
        if (at > 0) continue;
        end_of(first);
        if (start([&] { return anonymous_producer(naive_frames, resets); }) < 0) return;
        for (int k = 0; k < 1000 && shared->next.load() <= slots + 1; ++k) usleep(1000);  // it has begun
    }
    end_of(-1);
    std::printf("figure %s.got %u\nfigure %s.of %u\nfigure %s.wrong %u\n", name, got, name, naive_frames,
                name, wrong);
}

/// One buffer without a status word: a reader concurrent with a writer gets half of each frame.
void no_word() {
    clear();
    slot& s = shared->all[0];
    write(s, 1);
    end_of(start([&] {
        write(s, 2, true);
        return 0;
    }));
    std::printf("figure bare.torn %d\n", !is_whole(s, 1) && !is_whole(s, 2));
}

/// Claims a slot by a CAS that also stores the owner, and publishes it by a second CAS.
int owned_producer(unsigned epoch, unsigned from, unsigned dies) {
    for (unsigned frame = from; frame <= shared->last.load(); ++frame) {
        slot& s = shared->all[frame % slots];
        if (!wait_for(s.word, empty, 5)) return 1;
        uint64_t was = s.word;
        const uint64_t mine = word_of(writing, epoch, frame);
        if (!s.word.compare_exchange_strong(was, mine)) return 2;
        write(s, frame, frame == dies);
        uint64_t expected = mine;
        if (!s.word.compare_exchange_strong(expected, word_of(ready, epoch, frame))) return 3;
    }
    return 0;
}
int consumer() {
    for (unsigned frame = 0; frame <= shared->last.load(); ++frame) {
        slot& s = shared->all[frame % slots];
        if (!wait_for(s.word, ready, 5)) return 1;
        const uint64_t was = s.word.load();
        if (frame_of(was) > frame) ++shared->lost;
        if (frame_of(was) < frame) ++shared->repeated;
        if (!is_whole(s, frame)) ++shared->torn;
        shared->consumed.store(frame + 1);  // stored before the slot is freed, so that a crash after this
                                            // line repeats no frame
        s.word.store(empty, std::memory_order_release);
    }
    return 0;
}
/// Called after the producer with this `epoch` has ended: marks the slots that the producer was writing as
/// empty again. Returns the next frame.
unsigned repair(unsigned epoch, unsigned& in_mid_write) {
    unsigned next = shared->consumed;
    for (slot& s : shared->all) {
        uint64_t was = s.word;
        if (state_of(was) == writing && epoch_of(was) == epoch)
            in_mid_write += s.word.compare_exchange_strong(was, empty);
        else if (state_of(was) == ready)
            next = std::max(next, frame_of(was) + 1);
    }
    return std::max<unsigned>(next, shared->consumed);
}
void owned() {
    clear();
    shared->last = ~0U - 1;
    const pid_t reader = start(consumer);
    std::mt19937 random(seed);
    unsigned in_mid_write = 0, from = 0, epoch = 1;
    std::vector<double> gaps;
    for (; epoch <= kills; ++epoch) {
        const unsigned dies = epoch == 1 ? dies_at : ~0U;  // all later producers are killed at a random time
        const pid_t producer = start([&] { return owned_producer(epoch, from, dies); });
        if (epoch > 1) {
            usleep(1000 + random() % 3000);
            kill(producer, SIGKILL);
        }
        const double begin = now_us();
        end_of(producer);
        from = repair(epoch, in_mid_write);
        gaps.push_back(now_us() - begin);
    }
    const double begin = now_us();
    const unsigned before = from;
    shared->last = from + 200;
    end_of(start([&] { return owned_producer(epoch, from, ~0U); }));
    end_of(reader);
    const double us = (now_us() - begin) / (shared->consumed - before);
    std::nth_element(gaps.begin(), gaps.begin() + kills / 2, gaps.end());
    std::printf(
        "figure owned.kills %u\nfigure owned.mid_write %u\nfigure owned.frames %u\nfigure owned.complete %d\n"
        "figure owned.lost %u\nfigure owned.repeated %u\nfigure owned.torn %u\nfigure owned.frame_us %.1f\n"
        "figure owned.repair_us %.1f\n",
        kills, in_mid_write, shared->consumed.load(), shared->consumed.load() == shared->last.load() + 1,
        shared->lost.load(), shared->repeated.load(), shared->torn.load(), us, gaps[kills / 2]);
}

}  // namespace

int main(int argc, char** argv) {
    if (lesson::wants_usage(argc, argv, "carousel-lab-frames")) return 2;
    shared = lesson::shared_memory<ring>();
    no_word();
    anonymous("naive", false);
    anonymous("reset", true);
    owned();
    return 0;
}
