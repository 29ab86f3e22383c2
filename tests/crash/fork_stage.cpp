// A fork and a join for tests with real processes. With one input it is the fork: its first output is the
// number that it reads, its second output that number's square, with a list of which each frame uses a
// different part. With two inputs it is the join, a sink: it compares number and square of each frame, its
// list and the metadata of both, throws if they don't belong together, and gives the ledger a hash of both.
// Settings:
//   outputs   of the fork: 5 are too many, 1 is the number alone [2]
//   overrun   frame at which the fork's second output is overrun [-1: none]
//   die_at    of either: at that frame it throws, the fork after it has read its outputs; not if
//             FORK_MENDED is set [-1: never]
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include <carousel/stage.hpp>
#include "device/cpu/pool.hpp"
#include "ledger/ledger.hpp"

namespace carousel::test {

class fork_stage final : public carousel::stage {
public:
    carousel::description configure(const carousel::configuration& with) override {
        join_ = with.inputs.size() == 2;
        const i64 outputs = with.settings->integer("outputs", 2, 1, 5);
        die_at_ = with.settings->integer("die_at", -1, -1, 1'000'000);
        if (std::getenv("FORK_MENDED") != nullptr) die_at_ = -1;
        overrun_at_ = with.settings->integer("overrun", -1, -1, 1'000'000);
        carousel::description d;
        if (join_) return d;
        const plane value{"value", element::u64_, {1}};
        d.outputs.emplace_back("number", frame_format{"test.number", {value}, {}});
        for (i64 k = 1; k < outputs; ++k)
            d.outputs.emplace_back(
                k == 1 ? "square" : fmt::format("more-{}", k),
                frame_format{"test.square", {value, {"list", element::u16_, {longest}}}, {}});
        return d;
    }

    void prepare(carousel::environment& env) override {
        for (u32 lane = 0; lane < env.in_flight(); ++lane) seen_.push_back(std::make_unique<pair>());
    }

    void process(carousel::frame& f) override {
        const bool dies = static_cast<i64>(f.frame_number()) == die_at_;
        if (join_ && dies) throw std::runtime_error("dying as configured");
        if (join_) return compare(f);
        const u64* in = f.input().plane<const u64>("value").data();
        u64* number = f.output().plane<u64>("value").data();
        if (!f.output(1)) return f.queue().submit([=](device::cpu::pool&) { *number = *in; });
        u64* square = f.output("square").plane<u64>("value").data();
        u16* list = f.output(1).plane<u16>("list").data();
        const u64 n = f.frame_number();
        f.metadata().set("fork", n);
        f.output("square").set_used("list", {n % longest + 1});
        if (dies)
            throw std::runtime_error(fmt::format("dying as configured, with a list of {}", longest_list(f)));
        const bool over = static_cast<i64>(n) == overrun_at_;
        f.queue().submit([=](device::cpu::pool&) {
            *number = *in;
            *square = *in * *in;
            for (u64 k = 0; k <= n % longest; ++k) list[k] = static_cast<u16>(n + k);
            if (over) list[longest * 4] = 1;
        });
    }

    [[nodiscard]] bool commits_on_host() const override { return join_; }
    void finish(carousel::frame& f) override {
        const pair& both = *seen_[f.lane()];
        if (both.square != both.number * both.number || !both.list)
            throw std::runtime_error(fmt::format("frame {}: {} and {} don't belong together (its list {})",
                                                 f.frame_number(), both.number, both.square, both.list));
        const std::array<u64, 2> values{both.number, both.square};
        f.set_hash(telemetry::hash_bytes(std::as_bytes(std::span(values))));
    }

private:
    static constexpr u64 longest = 200;
    static u64 longest_list(const carousel::frame& f) { return f.output("square").plane<u16>("list").size(); }
    struct pair {
        u64 number = 0, square = 0;
        bool list = false;
    };

    void compare(carousel::frame& f) {
        const u64 n = f.frame_number();
        if (f.input_metadata(0).get<u64>("fork") != n || f.input_metadata(1).get<u64>("fork") != n)
            throw std::runtime_error(fmt::format("frame {}: its metadata are another frame's", n));
        const u64* number = f.input(0).plane<const u64>("value").data();
        const u64* square = f.input(1).plane<const u64>("value").data();
        const auto list = f.input(1).plane<const u16>("list");
        pair* to = seen_[f.lane()].get();
        f.queue().submit([=](device::cpu::pool&) {
            bool whole = list.size() == n % longest + 1;
            for (u64 k = 0; whole && k < list.size(); ++k) whole = list.data()[k] == static_cast<u16>(n + k);
            *to = {*number, *square, whole};
        });
    }

    bool join_ = false;
    i64 overrun_at_ = -1, die_at_ = -1;
    std::vector<std::unique_ptr<pair>> seen_;
};

}  // namespace carousel::test

int main(int argc, char** argv) { return carousel::stage_main<carousel::test::fork_stage>(argc, argv); }
