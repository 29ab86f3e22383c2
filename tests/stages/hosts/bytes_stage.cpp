// A stage for tests of links: frames of any size whose bytes are a function of their number. A sink
// identifies each frame by a hash of its bytes.
//   bytes            of each frame [1048576]
//   light            the source writes only the first word, the sink reads nothing, to measure the link
//                    [false]
//   smooth           the source writes words that are equal for 4 KiB, so that a frame compresses well; the
//                    hash still identifies it [false]
//   dies_at          the first four incarnations of the sink abort in that frame [-1]
//   ends_at          the source ends its stream before that frame [-1: it doesn't]
//   forwards_frames  it forwards frames: none of its deaths counts against a frame [false]
//   delay_ms         time that the sink takes for each frame [0]
//   turns            it stands in the middle: its output is a function of the bytes of its input alone, so it
//                    may be one of several instances on several hosts [false]
//   turned           with `carries`: the sink requires what a stage with `turns` adds [false]
//   carries          the source gives its frames all metadata that a frame can carry, and the sink ends its
//                    process if some of it is missing [false]
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <carousel/hash.hpp>
#include <carousel/stage.hpp>
#include "core/clock.hpp"
#include "device/cpu/pool.hpp"

namespace carousel::test {

struct gain_parameters {
    static constexpr const char* type = "test.gain";
    i32 gain;
    static parameter_schema schema() {
        return {type,
                sizeof(gain_parameters),
                {{.name = "gain", .kind = ring::parameter_kind::integer, .low = 0, .high = 100}}};
    }
};

class bytes_stage : public stage {
public:
    description configure(const configuration& with) override {
        source_ = with.inputs.empty();
        bytes_ = static_cast<u64>(with.settings->integer("bytes", 1 << 20, 8, i64{1} << 30));
        light_ = with.settings->flag("light", false);
        smooth_ = with.settings->flag("smooth", false);
        delay_ms_ = with.settings->integer("delay_ms", 0, 0, 60'000);
        turns_ = with.settings->flag("turns", false);
        turned_ = with.settings->flag("turned", false);
        dies_at_ = with.settings->integer("dies_at", -1, -1, 1'000'000);
        carries_ = with.settings->flag("carries", false);
        ends_at_ = with.settings->integer("ends_at", -1, -1, 1'000'000);
        description d;
        d.ends = ends_at_ >= 0;
        if (carries_) d.parameters = gain_parameters::schema();
        d.forwards_frames = with.settings->flag("forwards_frames", false);
        if (source_ || turns_) d.outputs = {format()};
        if (!source_) require_format(with.inputs[0].format, format(), with.stage, with.inputs[0].stage);
        return d;
    }
    void prepare(environment& env) override {
        incarnation_ = env.epoch();
        if (!source_ && !turns_) hasher_ = std::make_unique<plane_hasher>(env);
    }
    void process(frame& f) override {
        if (static_cast<i64>(f.ring_sequence()) == dies_at_ && incarnation_ <= 4) std::abort();
        if (ends_at_ >= 0 && static_cast<i64>(f.ring_sequence()) >= ends_at_) return f.end_stream();
        if (turns_) return turn(f);
        if (carries_) source_ ? set_hash(f) : check(f);
        if (!source_ && light_) return;
        if (!source_) return hasher_->enqueue(f, "data");
        u64* const out = reinterpret_cast<u64*>(f.output().plane<u8>("data").data());
        f.queue().submit([out, words = light_ ? 1 : bytes_ / 8, n = f.frame_number(),
                          smooth = smooth_](device::cpu::pool& pool) {
            pool.parallel_for(words, 65536, [&](u64 begin, u64 end, unsigned) {
                for (u64 k = begin; k < end; ++k)
                    out[k] = (n << 32U) ^ (smooth ? k / alike : k * 0x9E3779B97F4A7C15U);
            });
        });
    }
    [[nodiscard]] bool commits_on_host() const override { return !source_; }
    void finish(frame& f) override {
        if (delay_ms_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms_));
        if (hasher_ && !light_) hasher_->set_hash(f);
    }

private:
    static constexpr u64 alike = 512;
    static std::vector<std::byte> blob(u64 n) { return {n * 131 % 900, std::byte(n & 0xffU)}; }
    [[nodiscard]] u64 used(u64 n) const { return bytes_ - n % 7 * 8; }
    void set_hash(frame& f) const {
        const u64 n = f.frame_number();
        f.metadata().set("number", n);
        f.metadata().set("words", "frame " + std::to_string(n));
        f.metadata().set("blob", blob(n));
        f.output().set_used("data", {used(n)});
        f.set_capture_ns(now_ns() - 3 * ns_per_ms);
    }
    void turn(frame& f) const {
        const u64 number = f.frame_number();  // the output depends on it: another number is another picture
        if (carries_) {
            const u64 n = f.metadata().get<u64>("number").value_or(0);
            if (n != number)
                throw config_error("frame " + std::to_string(n) + " is called " + std::to_string(number));
            f.metadata().set("turned", n + 1);
            f.output().set_used("data", {used(n)});
        }
        const auto* const in = reinterpret_cast<const u64*>(f.input().plane<const u8>("data").data());
        u64* const out = reinterpret_cast<u64*>(f.output().plane<u8>("data").data());
        f.queue().submit([in, out, number, words = bytes_ / 8](device::cpu::pool& pool) {
            pool.parallel_for(words, 65536, [&](u64 begin, u64 end, unsigned) {
                for (u64 k = begin; k < end; ++k) out[k] = in[k] * 0x9E3779B97F4A7C15U + 1 + number;
            });
        });
    }
    void check(frame& f) const {
        const u64 n = f.frame_number(), now = now_ns();
        const auto need = [n](bool there, const char* what) {
            if (!there) throw config_error("frame " + std::to_string(n) + " has lost " + what);
        };
        need(f.metadata().get<u64>("number") == n, "a number");
        need(f.metadata().get<std::string>("words") == "frame " + std::to_string(n), "words");
        need(f.metadata().get<std::vector<std::byte>>("blob") == blob(n), "bytes");
        need(!turned_ || f.metadata().get<u64>("turned") == n + 1, "what was added on the way");
        need(f.input().plane<const u8>("data").size() == used(n), "what of its plane is in use");
        need(f.parameters<gain_parameters>().gain == 7, "its parameters");
        // Both hosts are one machine here: they share one clock, and the relation's error is below a second.
        need(f.capture_ns() < now && f.capture_ns() + 60 * ns_per_s > now, "its capture time");
        need(f.born_ns() < now && f.born_ns() + 60 * ns_per_s > now, "when it was begun");
    }
    [[nodiscard]] frame_format format() const {
        return {"test.bytes", {{.name = "data", .type = element::u8_, .shape = {bytes_}}}, {}};
    }
    bool source_ = false, light_ = false, smooth_ = false, carries_ = false, turns_ = false, turned_ = false;
    u64 bytes_ = 0;
    i64 delay_ms_ = 0, dies_at_ = -1, ends_at_ = -1;
    u32 incarnation_ = 0;
    std::unique_ptr<plane_hasher> hasher_;
};

}  // namespace carousel::test

int main(int argc, char** argv) { return carousel::stage_main<carousel::test::bytes_stage>(argc, argv); }
