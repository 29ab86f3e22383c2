// A stage for crash tests: numbers instead of pictures, and it dies on request. Source, middle or sink by its
// inputs. Settings:
//   enqueue_ms             time that it sleeps inside process() [0]
//   work_ms                time that the queue's work takes [0]
//   finish_ms              time that a sink sleeps inside finish() [0]
//   finish_threads         of the sink [1]
//   die_at                 frame at which it dies [-1: none]
//   die_every              number of frames after which it dies again, repeatedly [0: never]
//   die_how                exit0 | exit3 | exit76 | bare_exit | abort | segv | throw | gpu | hang | scribble
//                          (into its input) | scribble_header (of a frame of the first ring) |
//                          scribble_state (into the previous one) | hang_device
//                          (its queue's work never ends) | hang_finish | throw_finish [abort]
//   die_incarnations       only the first N incarnations of a seat die so [1000000]
//   bit_equal              declares that its outputs are the same on a GPU [true]
//   writable_inputs        requests writable inputs [false]
//   wild_write_at          frame at which its queue's work changes a byte past its input's slot [-1: none]
//   wild_write_in_process  process() does it instead of the queue [false]
//   carries                frames carry a capture time, metadata and a partly used list; a sink throws if any
//                          of them is missing [false]
//   picture                with `carries`: its frames are pictures of six rows, of which it uses some [false]
//   late_start             dies in prepare() [false]
//   print                  a line per frame on stderr [false]
//   sink                   has no output [false]
//   hashes                 a sink gives the ledger a hash of each number [true]
//   plain                  it has no finish() at all [false]
//   state                  its output is a running hash of all frames, which it keeps as its state [false]
//                          If it reads or samples the states of another stage, it takes their first word, and
//                          throws if one is not whole.
//   ends_at                a source ends its stream before that frame [-1: never]
//   ends_unannounced       without having declared that it may [false]
//   tombstone_at           a source passes that frame on as a tombstone [-1: none]
//   forwards_frames        none of its deaths counts against a frame; if it also ends its stream, it is taken
//                          for a receiver [false]
//   wakes                  a thread wakes the runner until the stage is destroyed, as a link's does [false]
//   no_device_epoch        that incarnation of the seat finds no device in prepare(), as a client of an MPS
//                          domain that is about to end does [-1: none]
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <carousel/stage.hpp>
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/log.hpp"
#include "device/cpu/pool.hpp"
#include "ledger/ledger.hpp"
#include "shm/control_block.hpp"

namespace carousel::test {

/// A field of a header of the first ring, at any address where this process has mapped the run.
volatile f64* header_of_first_ring() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        if (line.find("/dev/shm/carousel-") == std::string::npos || line.ends_with(".trace")) continue;
        // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel tells addresses as text
        auto* const c = reinterpret_cast<shm::control_block*>(std::stoull(line, nullptr, 16));
        return &c->frames[0].header[0].meta.time_s;
    }
    return nullptr;
}

void sleep_ms(i64 ms) {
    if (ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

class number_stage : public carousel::stage {
public:
    number_stage() = default;
    number_stage(const number_stage&) = delete;
    number_stage& operator=(const number_stage&) = delete;
    ~number_stage() override {
        sleep_ms(last_ms_);  // a GPU context takes its time, too
        if (!waker_.joinable()) return;
        // The other threads than this one and the waker belong to the runner.
        const auto threads = std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
        log::info("destroyed {} its runner", threads > 2 ? "before" : "after");
        ends_.store(true);
        waker_.join();
    }

    carousel::description configure(const carousel::configuration& with) override {
        name_ = with.stage;
        source_ = with.inputs.empty();
        const carousel::settings& s = *with.settings;
        enqueue_ms_ = s.integer("enqueue_ms", 0, 0, 60'000);
        work_ms_ = s.integer("work_ms", 0, 0, 60'000);
        finish_ms_ = s.integer("finish_ms", 0, 0, 60'000);
        die_at_ = s.integer("die_at", -1, -1, 1'000'000);
        if (std::getenv("NUMBER_REPAIRED") != nullptr) die_at_ = -1;  // for the replay of a dead letter
        die_every_ = s.integer("die_every", 0, 0, 1'000'000);
        die_incarnations_ = s.integer("die_incarnations", 1'000'000, 0, 1'000'000);
        die_how_ = s.choice(
            "die_how", "abort",
            {"exit0", "exit3", "exit76", "bare_exit", "abort", "segv", "throw", "gpu", "hang", "hang_device",
             "hang_finish", "throw_finish", "scribble", "scribble_header", "scribble_state"});
        finish_threads_ = static_cast<u32>(s.integer("finish_threads", 1, 0, 64));
        late_start_ = s.flag("late_start", false);
        no_device_epoch_ = s.integer("no_device_epoch", -1, -1, 1'000'000);
        log_frames_ = s.flag("print", false);
        wakes_ = s.flag("wakes", false);
        sink_ = s.flag("sink", false);
        hashes_ = s.flag("hashes", true);
        plain_ = s.flag("plain", false);
        ends_at_ = s.integer("ends_at", -1, -1, 1'000'000);
        state_ = s.flag("state", false);
        tombstone_at_ = s.integer("tombstone_at", -1, -1, 1'000'000);
        const bool unannounced = s.flag("ends_unannounced", false);
        carousel::description d;
        d.writable_inputs = s.flag("writable_inputs", false);
        wild_write_at_ = s.integer("wild_write_at", -1, -1, 1'000'000);
        wild_write_in_process_ = s.flag("wild_write_in_process", false);
        d.ends = ends_at_ >= 0 && !unannounced;
        d.forwards_frames = s.flag("forwards_frames", false);
        d.finish_threads = finish_threads_;
        d.bit_equal = s.flag("bit_equal", true);
        d.accepts_sampled_inputs = !with.sampled.empty();
        if (!source_ && with.inputs[0].format.planes[0].name == "hash") input_ = "hash";
        samples_state_ = !with.sampled.empty() && with.sampled[0].format.planes[0].name == "hash";
        carries_ = s.flag("carries", false);
        if (!sink_) d.outputs = {{"test.number", {{"value", element::u64_, {1}}}, {}}};
        if (state_) d.state = {{"hash", element::u64_, {state_words}}};
        picture_ = carries_ && s.flag("picture", false);
        if (!sink_ && picture_) {
            d.outputs[0].type = "test.image";
            d.outputs[0].planes.push_back({"picture", element::u8_, {rows, 5, 3}});
        }
        if (!sink_ && carries_) d.outputs[0].planes.push_back({"list", element::u16_, {longest_list, 2}});
        return d;
    }

    void prepare(carousel::environment& env) override {
        env_ = &env;
        log::info("number stage of build {}", NUMBER_STAGE_BUILD);
        if (late_start_) throw std::runtime_error("this stage can't be prepared");
        if (static_cast<i64>(env.epoch()) == no_device_epoch_) {
            last_ms_ = 200;
            throw device_error("the first kernels failed, as told");
        }
        if (wakes_) {
            last_ms_ = 50;
            waker_ = std::thread([this] {
                for (; !ends_.load(); sleep_ms(1)) env_->wake();
            });
        }
        for (u32 lane = 0; lane < env.in_flight(); ++lane) seen_.push_back(std::make_unique<u64>(0));
    }

    void process(carousel::frame& f) override {
        if (log_frames_) log::info("frame {}", f.frame_number());
        sleep_ms(enqueue_ms_);
        const bool turn = dies_at(f.frame_number()) && static_cast<i64>(env_->epoch()) <= die_incarnations_;
        if (carries_ && !sink_) load(f);
        if (carries_ && sink_) check_load(f);
        if (turn && die_how_ == "scribble")
            *const_cast<volatile u64*>(f.input().plane<const u64>("value").data()) = 0;
        if (turn && die_how_ == "scribble_header") *header_of_first_ring() = 0;
        if (turn && die_how_ == "scribble_state")
            *const_cast<volatile u64*>(f.state().previous().plane<const u64>("hash").data()) = 0;
        if (turn && !die_how_.ends_with("_finish") && die_how_ != "hang_device") die();
        if (ends_at_ >= 0 && static_cast<i64>(f.frame_number()) >= ends_at_) return end(f);
        if (static_cast<i64>(f.frame_number()) == tombstone_at_) return f.pass_tombstone();
        if (samples_state_) check_sampled_state(f);
        const u64* in = source_ ? nullptr : f.input().plane<const u64>(input_).data();
        if (input_ == "hash") check_state(in, f.frame_number());
        u64* out = sink_ ? seen_[f.lane()].get() : f.output().plane<u64>("value").data();
        const u64 frame_number = f.frame_number();
        const i64 ms = turn && die_how_ == "hang_device" ? 3'600'000 : work_ms_;
        // After the runner's check of the input.
        auto* target = static_cast<i64>(frame_number) == wild_write_at_
                           ? reinterpret_cast<std::byte*>(const_cast<u64*>(in)) + device::slot_alignment
                           : nullptr;
        if (target != nullptr && wild_write_in_process_) std::exchange(target, nullptr)[1000] ^= std::byte{1};
        if (state_) return remember(f, in, out, ms);
        f.queue().submit([=](device::cpu::pool&) {
            sleep_ms(ms);
            if (target != nullptr) target[1000] ^= std::byte{1};
            *out = in != nullptr ? *in * 3 + 1 : frame_number * 1000;
        });
    }

    /// Each word of a state is the hash of all frames up to this one, so a state that is torn, lost, repeated
    /// or that of another frame changes the numbers of all frames that follow.
    void remember(carousel::frame& f, const u64* in, u64* out, i64 ms) const {
        const u64 number = f.frame_number() * 1000;
        const carousel::frame_state state = f.state();
        const u64* before = state.previous().plane<const u64>("hash").data();
        u64* after = state.next().plane<u64>("hash").data();
        if (state.first() && f.frame_number() != 0) log::warning("frame {} has no state", f.frame_number());
        f.queue().submit([=](device::cpu::pool&) {
            for (i64 k = 0; k < state_words; ++k) {
                if (k == state_words / 2) sleep_ms(ms);
                after[k] =
                    std::rotl((before[k] ^ (in != nullptr ? *in : number)) * 0x9E37'79B9'7F4A'7C15, 29);
            }
            *out = std::count(after, after + state_words, after[0]) == state_words ? after[0] : 1;
        });
    }

    static void check_state(const u64* words, u64 frame_number) {
        if (std::count(words, words + state_words, words[0]) != state_words)
            throw std::runtime_error(fmt::format("the state of frame {} is not whole", frame_number));
    }

    /// The newest state may be that of any frame, but of none before the last one that it has seen.
    void check_sampled_state(carousel::frame& f) {
        const carousel::sampled_frame sampled = f.sampled(0);
        if (!sampled) return;
        check_state(sampled.plane<const u64>("hash").data(), sampled.frame_number());
        if (sampled.frame_number() < newest_)
            throw std::runtime_error(
                fmt::format("the newest state went back from {} to {}", newest_, sampled.frame_number()));
        newest_ = sampled.frame_number();
    }

    [[nodiscard]] bool commits_on_host() const override { return sink_ && !plain_; }
    void finish(carousel::frame& f) override {
        sleep_ms(finish_ms_);
        // It has not requested tombstones: one in finish() is a fault of the runner.
        if (!f.tombstone_reason().empty()) throw std::logic_error("finish() of a tombstone");
        if (die_how_.ends_with("_finish") && static_cast<i64>(f.frame_number()) == die_at_ &&
            static_cast<i64>(env_->epoch()) <= die_incarnations_) {
            if (die_how_ == "throw_finish") throw std::runtime_error("as told");
            sleep_ms(3'600'000);
        }
        if (!hashes_) return;
        const u64 value = *seen_[f.lane()];
        f.set_hash(telemetry::hash_bytes(std::as_bytes(std::span(&value, 1))));
    }

private:
    static constexpr u64 longest_list = 100;
    static constexpr i64 state_words = 1000;
    static constexpr u64 rows = 6;
    static u64 list_of(u64 frame_number) { return frame_number * 7 % (longest_list + 1); }

    [[nodiscard]] bool dies_at(u64 frame_number) const {
        const i64 past = static_cast<i64>(frame_number) - die_at_;
        if (die_at_ < 0 || die_every_ == 0) return past == 0;
        return past >= 0 && past % die_every_ == 0;
    }
    void load(carousel::frame& f) const {
        const u64 n = f.frame_number();
        if (source_) f.set_capture_ns(now_ns() - 5'000'000);
        f.metadata().set(source_ ? "number" : "twice", source_ ? n : 2 * n);
        f.metadata().set("by", name_);
        f.output().set_used("list", {list_of(n)});
        const auto list = f.output().plane<u16>("list");
        for (u64 k = 0; k < 2 * list_of(n); ++k) list.data()[k] = static_cast<u16>(n + k);
        if (!picture_) return;
        f.output().set_used("picture", {n % rows + 1});
        const auto picture = f.output().plane<u8>("picture");
        for (u64 k = 0; k < picture.size(); ++k) picture.data()[k] = static_cast<u8>(n + k);
    }
    static void check_load(carousel::frame& f) {
        const u64 n = f.frame_number();
        const auto list = f.input().plane<const u16>("list");
        bool whole = f.metadata().get<u64>("number") == n && f.metadata().get<u64>("twice") == 2 * n &&
                     f.metadata().get<std::string>("by") == "middle" && f.capture_ns() != 0 &&
                     f.metadata().entries().size() == 3 && list.extent(0) == list_of(n) &&
                     list.extent(1) == 2;
        for (u64 k = 0; whole && k < list.size(); ++k) whole = list.data()[k] == static_cast<u16>(n + k);
        if (!whole)
            throw std::runtime_error(fmt::format("frame {} doesn't carry what it should: {}; a list of {}", n,
                                                 ring::line_of(f.metadata().bytes()), list.extent(0)));
    }
    /// The work enqueued for the frame is discarded, for any duration of it.
    void end(carousel::frame& f) const {
        u64* out = f.output().plane<u64>("value").data();
        f.queue().submit([out, ms = work_ms_](device::cpu::pool&) {
            sleep_ms(ms);
            *out = ~u64{0};
        });
        f.end_stream();
    }
    [[noreturn]] void die() const {
        log::warning("dying as configured: {}", die_how_);
        if (die_how_ == "exit0") std::exit(0);
        if (die_how_ == "exit3") std::exit(3);
        if (die_how_ == "exit76") std::exit(exit_code::gave_back);
        if (die_how_ == "bare_exit") ::_exit(5);
        if (die_how_ == "segv") std::raise(SIGSEGV);
        if (die_how_ == "gpu") throw cuda_error(700, "an illegal address, as told");
        if (die_how_ == "throw") throw std::runtime_error("as told");
        while (die_how_ == "hang") sleep_ms(1000);
        std::abort();
    }

    std::string name_, die_how_, input_ = "value";
    u64 newest_ = 0;
    bool source_ = false, sink_ = false, late_start_ = false, log_frames_ = false, hashes_ = true,
         plain_ = false, carries_ = false, picture_ = false, state_ = false, samples_state_ = false;
    u32 finish_threads_ = 1;
    i64 enqueue_ms_ = 0, work_ms_ = 0, finish_ms_ = 0, die_at_ = -1, die_every_ = 0, die_incarnations_ = 0,
        no_device_epoch_ = -1, wild_write_at_ = -1, last_ms_ = 0, ends_at_ = -1, tombstone_at_ = -1;
    bool wild_write_in_process_ = false, wakes_ = false;
    carousel::environment* env_ = nullptr;
    std::atomic<bool> ends_{false};
    std::thread waker_;
    std::vector<std::unique_ptr<u64>> seen_;
};

}  // namespace carousel::test

int main(int argc, char** argv) { return carousel::stage_main<carousel::test::number_stage>(argc, argv); }
