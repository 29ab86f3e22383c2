// A stage for crash tests on a GPU: numbers that kernels write, and ways to die that only a device has.
// Source, middle or sink by its inputs. Settings:
//   hold_at    frame whose work the device holds back [-1: none]
//   hold_ms    for this time [0]
//   die_at     frame at which it dies [-1: none]
//   die_how    illegal | trap | misaligned | memory | endless [illegal]
//   die_incarnations  only the first N incarnations of a seat die so [1]
//   sink       it writes nothing [false]
//   ends_at    a source ends its stream before that frame [-1: never]
//   same_work  it declares that its work is equal for every frame [false]
//   changes_at from that frame on it is not [-1: it is]
//   finishers  N threads call its finish(), in which it has nothing to do [0: it has none]
//   remembers  N words, each a running hash of all frames, as its state; its output is one of them [0: none]
//   scratch    these words are in N buffers of its own instead, for comparison of the time [0: a state]
//   wild_write_at  frame at which its finish() writes beyond its slot, in its first die_incarnations
//   incarnations [-1: none]
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include <carousel/cuda.hpp>
#include <carousel/stage.hpp>
#include "core/clock.hpp"
#include "core/log.hpp"
#include "ledger/ledger.hpp"
#include "tests/gpu/device_kernels.hpp"

namespace carousel::test {

class device_stage : public carousel::stage {
public:
    carousel::description configure(const carousel::configuration& with) override {
        name_ = with.stage;
        source_ = with.inputs.empty();
        const carousel::settings& s = *with.settings;
        hold_at_ = s.integer("hold_at", -1, -1, 1'000'000);
        hold_ms_ = s.integer("hold_ms", 0, 0, 60'000);
        die_at_ = s.integer("die_at", -1, -1, 1'000'000);
        die_incarnations_ = s.integer("die_incarnations", 1, 0, 1'000'000);
        die_how_ = s.choice("die_how", "illegal", {"illegal", "trap", "misaligned", "memory", "endless"});
        sink_ = s.flag("sink", false);
        ends_at_ = s.integer("ends_at", -1, -1, 1'000'000);
        same_work_ = s.flag("same_work", false);
        changes_at_ = s.integer("changes_at", -1, -1, 1'000'000);
        finishers_ = s.integer("finishers", 0, 0, 8);
        wild_write_at_ = s.integer("wild_write_at", -1, -1, 1'000'000);
        words_ = static_cast<u64>(s.integer("remembers", 0, 0, 100'000'000));
        scratch_ = static_cast<u64>(s.integer("scratch", 0, 0, 64));
        carousel::description d;
        if (words_ > 0 && scratch_ == 0) d.state = {{"hash", element::u64_, {words_}}};
        if (finishers_ > 0) d.finish_threads = static_cast<u32>(finishers_);
        d.ends = source_ && ends_at_ >= 0;
        d.same_work = same_work_;
        d.device = runs_on::cuda;  // only this stage can die on a GPU
        if (!sink_) d.outputs = {{"test.number", {{"value", element::u64_, {1}}}, {}}};
        return d;
    }

    void prepare(carousel::environment& env) override {
        env_ = &env;
        seen_ = env.context().allocate_host(sizeof(u64) * env.in_flight());
        word_ = env.context().allocate(sizeof(u64) * 2);
        if (scratch_ > 0) memory_ = env.context().allocate(sizeof(u64) * scratch_ * words_);
    }

    void process(carousel::frame& f) override {
        void* stream = cuda::stream(f);
        const auto n = static_cast<i64>(f.frame_number());
        if (ends_at_ >= 0 && n >= ends_at_) return f.end_stream();
        if (n == hold_at_ || n == hold_at_ + 1) log::info("frame {} taken at {} ns", n, now_ns());
        if (n == hold_at_ && hold_ms_ > 0) enqueue_hold(stream, static_cast<u64>(hold_ms_) * 1'000'000);
        if (n == die_at_ && static_cast<i64>(env_->epoch()) <= die_incarnations_) die(stream);
        const u64* in = source_ ? nullptr : f.input().plane<const u64>("value").data();
        u64* out =
            sink_ ? reinterpret_cast<u64*>(seen_->data()) + f.lane() : f.output().plane<u64>("value").data();
        if (words_ > 0) {
            launch_remember(f.queue(), next(f), previous(f), out, in, f.frame_number(), words_);
        } else if (same_work_) {
            launch_number(f.queue(), out, in, f.frame_number(), changes_at_ >= 0 && n >= changes_at_ ? 2 : 1);
        } else {
            enqueue_number(stream, out, in, f.frame_number());
        }
    }

    [[nodiscard]] bool commits_on_host() const override { return sink_ || finishers_ > 0; }
    void finish(carousel::frame& f) override {
        if (!sink_) return wild_write(f);
        const u64 value = reinterpret_cast<const u64*>(seen_->host_data())[f.lane()];
        f.set_hash(telemetry::hash_bytes(std::as_bytes(std::span(&value, 1))));
    }

private:
    [[nodiscard]] const u64* previous(const carousel::frame& f) const {
        if (scratch_ == 0) return f.state().previous().plane<const u64>("hash").data();
        return reinterpret_cast<const u64*>(memory_->data()) +
               (f.frame_number() + scratch_ - 1) % scratch_ * words_;
    }
    [[nodiscard]] u64* next(const carousel::frame& f) const {
        if (scratch_ == 0) return f.state().next().plane<u64>("hash").data();
        return reinterpret_cast<u64*>(memory_->data()) + f.frame_number() % scratch_ * words_;
    }

    void wild_write(carousel::frame& f) const {
        if (static_cast<i64>(f.frame_number()) != wild_write_at_ ||
            static_cast<i64>(env_->epoch()) > die_incarnations_)
            return;
        auto* const payload = reinterpret_cast<std::byte*>(f.output().plane<u64>("value").data());
        write_word(reinterpret_cast<u64*>(payload + device::slot_alignment + 104), 1);
    }

    void die(void* stream) const {
        log::warning("dying as configured: {}", die_how_);
        if (die_how_ == "memory")
            throw std::runtime_error(std::string("64 TiB of GPU memory: ") + take_too_much_memory());
        const std::map<std::string, device_fault> faults = {{"illegal", device_fault::illegal},
                                                            {"trap", device_fault::trap},
                                                            {"misaligned", device_fault::misaligned},
                                                            {"endless", device_fault::endless}};
        enqueue_fault(stream, faults.at(die_how_), reinterpret_cast<u64*>(word_->data()));
    }

    std::string name_, die_how_;
    bool source_ = false, sink_ = false, same_work_ = false;
    i64 hold_at_ = -1, hold_ms_ = 0, die_at_ = -1, die_incarnations_ = 0, ends_at_ = -1, changes_at_ = -1,
        finishers_ = 0, wild_write_at_ = -1;
    const carousel::environment* env_ = nullptr;
    u64 words_ = 0, scratch_ = 0;
    std::unique_ptr<device::mapping> seen_, word_, memory_;
};

}  // namespace carousel::test

int main(int argc, char** argv) { return carousel::stage_main<carousel::test::device_stage>(argc, argv); }
