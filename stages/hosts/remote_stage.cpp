#include "stages/hosts/remote_stage.hpp"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>

#include "core/clock.hpp"
#include "core/log.hpp"
#include "kernels/plane_hash.hpp"
#include "stages/hosts/link_frame.hpp"

namespace carousel::stages {
namespace {

constexpr u32 most_asked = 16;  ///< the maximum of in_flight
constexpr u64 poll_every_ns = 250 * ns_per_ms;
/// If the link is down for longer than this time, the frames that were sent over it are treated as lost. (A
/// link that is silent for 1 s is treated as down.)
constexpr u64 away_patience_ns = 500 * ns_per_ms;
constexpr u64 release_patience_ns = 5 * ns_per_s;
constexpr u64 leave_patience_ns = 2 * ns_per_s;

[[noreturn]] void give_back(const std::string& why) {
    throw error(exit_code::gave_back,
                why + ": other instances process this instance's frames until the other host is back");
}

}  // namespace

description remote_stage::configure(const configuration& with) {
    const input_description& in = require_one_input(with, "the frames that another host works on");
    end_.read(with, in.format);
    back_ = end_.where;
    back_.address = with.settings->text("back_address", "");
    back_.port = static_cast<u16>(with.settings->integer("back_port", 47101, 1024, 65535 - 64));
    give_back_ns_ =
        static_cast<u64>(with.settings->integer("give_back_ms", 5000, 100, 3'600'000)) * ns_per_ms;
    const std::string output = with.settings->text("output", "");
    try {
        made_ = frame_format::from_json(with.settings->text("format", ""));
    } catch (const error& e) {
        throw settings_error("format", fmt::format("{}. Expected the stage's format as JSON", e.what()));
    }
    made_bytes_ = hosts::payload_bytes(made_);
    description d;
    d.outputs = {output_description(output, made_)};
    d.finish_threads = most_asked;
    return d;
}

void remote_stage::prepare(environment& env) {
    end_.env = &env;
    end_.token = hosts::token_file::read(end_.where.token);
    device::context& c = env.context();
    payload_.prepare(env, end_.bytes);
    answer_hash_ = c.allocate_host(sizeof(u64));
    if (const u64 bytes = kernels::hash_scratch_bytes(c.kind()); bytes > 0)
        collector_scratch_ = c.allocate(bytes);
    collector_queue_ = c.make_queue();
    numbers_.resize(env.in_flight());
    for (u32 k = 0; k < env.in_flight(); ++k) buffers_.push_back(c.allocate_host(made_bytes_));
}

// Opened at the first call of ready() and not earlier, because the epoch is not known before that call.
void remote_stage::open() {
    environment& env = *end_.env;
    hosts::receiver_link::set_up s;
    s.where = back_;
    s.expected = hosts::hello_of(made_, env.parameters());
    s.expected.kind = static_cast<u8>(hosts::link_kind::answers);
    s.token = end_.token;
    s.run = env.run_id();
    s.figures_path = end_.file("figures") + ".back";
    for (const auto& b : buffers_) s.buffers.push_back(b->host_data());
    s.wake = [this] {
        {
            const std::lock_guard lock(mutex_);
            has_updates_ = true;
        }
        changed_.notify_all();
    };
    answers_ = std::make_unique<hosts::receiver_link>(std::move(s));
    hosts::hello own_hello = hosts::hello_of(end_.format, env.parameters());
    own_hello.run = env.run_id();
    own_hello.pipeline = std::filesystem::path(env.runtime_directory()).filename().string();
    own_hello.ring = end_.stage;
    own_hello.by_durable = 1;  // requests that the receiver also reports which frames have left its ring
    own_hello.kind = static_cast<u8>(hosts::link_kind::work);
    work_ = std::make_unique<hosts::sender_link>(end_.where, own_hello, end_.token, u64{env.epoch()} << 32U,
                                                 end_.file("figures"));
    collector_ = std::thread([this] { collect(); });
}

bool remote_stage::ready(u64, u64) {
    if (!work_) open();
    if (const std::string why = work_->numbering_restarted(); !why.empty()) give_back(why);
    const std::lock_guard lock(mutex_);
    if (!broken_.empty()) throw config_error(broken_);
    return work_->takes_work();
}

void remote_stage::process(frame& f) {
    payload_.enqueue(f);
    numbers_[f.lane()] = work_->next_number();
}

void remote_stage::send(frame& f, u64 number) {
    hosts::frame_message m = hosts::message_of(f);
    m.ring_sequence = number;
    const std::byte* const data = payload_.describe(f, m);
    {
        const std::lock_guard lock(mutex_);
        asked_[number].to = f.output().slot() + hosts::before_payload;
    }
    work_->offer(m, data);
}

hosts::frame_message remote_stage::await(frame& f, u64 number) {
    const u64 sent = now_ns();
    std::unique_lock lock(mutex_);
    const auto answered = [&] { return asked_[number].answered; };
    while (!changed_.wait_for(lock, std::chrono::nanoseconds(poll_every_ns), answered)) {
        if (!broken_.empty()) throw config_error(broken_);
        lock.unlock();
        if (const std::string why = work_->numbering_restarted(); !why.empty()) give_back(why);
        if (work_->away_ns() > away_patience_ns) give_back("the link to the other host is down");
        if (now_ns() - sent > give_back_ns_)
            give_back(fmt::format("frame {} was not answered within {} ms", f.frame_number(),
                                  give_back_ns_ / ns_per_ms));
        f.wait_for_link(work_->alive());
        lock.lock();
    }
    hosts::frame_message answer = std::move(asked_[number].answer);
    asked_.erase(number);
    return answer;
}

// The input's memory is leased to the link until the link releases this memory; when a connection ends, all
// memory is released.
void remote_stage::finish(frame& f) {
    const u64 number = numbers_[f.lane()];
    send(f, number);
    const hosts::frame_message answer = await(f, number);
    if (!work_->release(number, release_patience_ns)) give_back("the link does not release a frame's memory");
    if (!answer.tombstone_reason.empty())
        throw error(exit_code::stage_exception,
                    "the other host gave the frame up: " + answer.tombstone_reason);
    f.carry(answer.metadata, hosts::extents_of(answer.used));
}

// Copies the answer to its destination and checks the copy, because a new sender may overwrite the buffer
// during the copy.
bool remote_stage::fill(std::byte* to, const hosts::receiver_link::arrived& a) {
    collector_queue_->copy(to, a.data, made_bytes_);
    kernels::hash_args args{.data = to, .row_bytes = made_bytes_};
    if (collector_scratch_)
        args.scratch = collector_scratch_->data(), args.scratch_bytes = collector_scratch_->bytes();
    args.out = reinterpret_cast<u64*>(answer_hash_->data());
    kernels::hash_plane(*collector_queue_, args);
    collector_queue_->drain();
    return *reinterpret_cast<const volatile u64*>(answer_hash_->host_data()) == a.message.hash;
}

// If no frame waits for the answer, the answer was meant for a predecessor or is a repetition. Such an
// answer is also acknowledged, so that the other host's ring advances.
void remote_stage::handle_answer(const hosts::receiver_link::arrived& a) {
    const u64 number = a.message.ring_sequence;
    const std::string asked_run = work_->remote_run();
    bool sound = true;
    {
        const std::lock_guard lock(mutex_);
        const auto at = a.run == asked_run ? asked_.find(number) : asked_.end();
        if (at != asked_.end() && !at->second.answered) {
            sound = !a.message.tombstone_reason.empty() || fill(at->second.to, a);
            at->second.answered = sound;
            if (sound) at->second.answer = a.message;
        }
    }
    // called without the lock, because the link's thread calls `wake` while it holds the link's lock
    if (!sound) return answers_->damaged(number);
    changed_.notify_all();
    answers_->taken(a);
}

void remote_stage::collect() {
    std::unique_lock lock(mutex_);
    while (!ending_) {
        changed_.wait_for(lock, std::chrono::nanoseconds(poll_every_ns),
                          [&] { return has_updates_ || ending_; });
        has_updates_ = false;
        lock.unlock();
        try {
            while (const auto a = answers_->oldest_whole()) handle_answer(*a);
        } catch (const error& e) {
            lock.lock();
            broken_ = e.what();
            return;
        }
        end_.env->wake();
        lock.lock();
    }
}

remote_stage::~remote_stage() {
    if (!work_) return;
    const u64 until = now_ns() + leave_patience_ns;
    if (work_->end_here(leave_patience_ns))  // sends EOS to that host, so that its stages also end normally
        while (!answers_->end() && now_ns() < until)
            std::this_thread::sleep_for(std::chrono::nanoseconds(ns_per_ms));
    {
        const std::lock_guard lock(mutex_);
        ending_ = true;
    }
    changed_.notify_all();
    collector_.join();
    answers_.reset();  // its thread calls `wake`
}

}  // namespace carousel::stages
