// The cost of metadata per frame: source, middle and sink of a ring's own steps in one process (worker::begin
// to complete), with no entry, with one, with eight, and with as many as fit; best of rounds. Also what
// setting
// and reading one entry costs.   metadata_cost [FRAMES [ROUNDS]]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <vector>

#include "core/clock.hpp"
#include "frame/metadata.hpp"
#include "ring/participants.hpp"
#include "ring/recovery.hpp"
#include "ring/topology.hpp"
#include "ring/worker.hpp"
#include "shm/segment.hpp"

namespace {

using namespace carousel;

struct chain {
    shm::private_block c = shm::make_private_block();
    std::vector<ring::worker> workers;

    chain() {
        ring::plan p;
        p.stages = {{"source", {}, true}, {"middle", {0}, true}, {"sink", {1}, false}};
        for (ring::stage_plan& s : p.stages) s.slot_bytes = 256;
        ring::initialise(*c, p);
        for (u32 seat = 0; seat < 3; ++seat) {
            const ring::incarnation_id incarnation = ring::appoint(*c, seat);
            (void)ring::revoke(*c, seat, 0);
            if (ring::claim(*c, incarnation) != ring::claim_result::ok || !ring::go_live(*c, incarnation))
                std::abort();
            workers.emplace_back(*c, incarnation.seat, incarnation.entry, incarnation.epoch);
        }
    }
    void pass(u32 entries) {
        for (u32 k = 0; k < workers.size(); ++k) {
            ring::worker& w = workers[k];
            ring::job j;
            if (w.begin(j, 0) != ring::outcome::ok) std::abort();
            if (k == 0 && entries > 0) {
                shm::frame_header& h = w.output(0).header_to_write(j.output[0].index);
                for (u32 e = 0; e < entries; ++e) {
                    const char key[] = {'e', static_cast<char>('0' + e / 10),
                                        static_cast<char>('0' + e % 10)};
                    if (ring::set_metadata(h.metadata, h.metadata_bytes, {key, sizeof key}, 0.5 + e) !=
                        ring::metadata_change::done)
                        std::abort();
                }
            }
            if (!w.submit(j) || !w.commit(j) || !w.complete(j)) std::abort();
        }
    }
};

f64 best_ns(u32 rounds, u64 times, const std::function<void()>& work) {
    f64 best = 1e18;
    for (u32 k = 0; k < rounds; ++k) {
        const u64 began = now_ns();
        for (u64 n = 0; n < times; ++n) work();
        best = std::min(best, static_cast<f64>(now_ns() - began) / static_cast<f64>(times));
    }
    return best;
}

}  // namespace

int main(int argc, char** argv) {
    const u64 frames = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 500;
    const u32 rounds = argc > 2 ? static_cast<u32>(std::strtoul(argv[2], nullptr, 10)) : 400;
    f64 without = 0;
    for (const u32 entries : {0U, 1U, 8U, 64U}) {
        chain c;
        const f64 ns = best_ns(rounds, frames, [&] { c.pass(entries); });
        if (entries == 0) without = ns;
        fmt::print("{:2} entries ({:4} bytes): {:7.1f} ns a frame through three stages, {:+.1f} ns\n",
                   entries, entries * 15, ns, ns - without);
    }
    std::byte room[shm::max_metadata_bytes];
    u32 used = 0;
    u64 found = 0;
    const f64 set = best_ns(rounds, frames, [&] {
        used = 0;
        found += ring::set_metadata(room, used, "exposure_ms", 3.5) == ring::metadata_change::done ? 1U : 0U;
    });
    const f64 get = best_ns(rounds, frames, [&] {
        found += ring::find_metadata(std::span(room).first(used), "exposure_ms") ? 1U : 0U;
    });
    fmt::print("setting one: {:.1f} ns; reading one: {:.1f} ns ({} done)\n", set, get, found);
    return 0;
}
