#include "stages/sdk/port_seat.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "device/backend.hpp"
#include "frame/frame_format.hpp"
#include "run/directory.hpp"

namespace carousel {
namespace {

constexpr u32 try_again_us = 10'000;

}  // namespace

port_seat::port_seat(std::shared_ptr<port_attachment> run, std::string stage, bool writes,
                     port_options options)
    : to_(std::move(run)),
      stage_(std::move(stage)),
      folder_(to_->run().folder),
      run_id_(to_->run().run_id),
      writes_(writes),
      options_(std::move(options)) {
    const u64 until = now_ns() + nanoseconds_of(to_->options().wait_s);
    for (;; ::usleep(try_again_us)) {
        const bool last = now_ns() >= until;
        try {
            if (connect()) break;
        } catch (const session::seat_taken&) {  // the seat's holder may have died a moment ago
            if (last) throw;
        } catch (const shm_error&) {  // the supervisor is starting, or taking the run over
            if (last) throw;
        }
    }
    inputs_ = session_->inputs();
    input_names_ = session_->input_names();
    output_ = session_->output();
    check_planes();
}

// Not called in a forked child, because all seats are owned by an owned_ptr.
port_seat::~port_seat() {
    const device::kept_thread kept(may_use_gpu());
    session_.reset();
}

// The next incarnation may use one.
bool port_seat::may_use_gpu() const noexcept {
    return !session_ || session_->where() == device::device_kind::cuda;
}

bool port_seat::connect() {
    session_ = owned_ptr<port_session>(new port_session(
        folder_, stage_, writes_,
        [this](const device::device_id& id) -> device::context& { return *to_->device_named_by(id); }));
    unsupervised_since_ns_ = 0;
    return true;
}

void port_seat::check_planes() const {
    if (options_.planes.empty()) return;
    const ring::frame_format& offered = writes_ ? output_ : inputs_.front();
    for (const auto& [name, text] : options_.planes) {
        const ring::plane expected = ring::plane_from_text(name, text), *there = offered.find(name);
        if (there == nullptr || there->type != expected.type || there->shape != expected.shape)
            throw config_error(
                fmt::format("port \"{}\" has frames of {}, but this program expects {} = \"{}\"", stage_,
                            offered.describe(), name, text));
    }
}

// A run without a supervisor may be taken over, so this waits for that as long as opening a run does.
bool port_seat::has_run_ended(u64 now) {
    const std::optional<run::record> r = run::read_record(folder_);
    if (!r || r->run_id != run_id_) return true;
    if (unsupervised_since_ns_ == 0) unsupervised_since_ns_ = now;
    return now > unsupervised_since_ns_ + nanoseconds_of(to_->options().wait_s);
}

bool port_seat::reconnect(u64 until_ns) {
    for (;; ::usleep(try_again_us)) {
        try {
            return connect();
        } catch (const session::seat_taken&) {
            unsupervised_since_ns_ = 0;
        } catch (const shm_error&) {
            ended_ = has_run_ended(now_ns());
        } catch (const config_error&) {  // the port was accepted before, so a permanent refusal now means
                                         // that the run has ended
            ended_ = true;
        }
        if (ended_ || now_ns() >= until_ns) return false;
    }
}

void port_seat::require_owner() const { require_port_owner(owner_, stage_); }

bool port_seat::next(u64 timeout_ns) {
    require_owner();
    if (ended_) return false;
    if (has_frame_ && !writes_)
        throw config_error(
            fmt::format("frame {} of port \"{}\" was not committed before the next one was requested: the "
                        "run waits for its commit()",
                        session_->job().ring_sequence, stage_));
    if (has_frame_) {
        session_->reissue_frame();
        return true;
    }
    const device::kept_thread kept(may_use_gpu());
    const u64 until = now_ns() + timeout_ns;
    for (;;) {
        if (!session_ && !reconnect(until)) return false;
        switch (session_->begin(until)) {
            case port_session::wait_result::frame:
                hash = std::nullopt;
                return has_frame_ = true;
            case port_session::wait_result::nothing:
                return false;
            case port_session::wait_result::closed:
                ended_ = true;
                session_.reset();
                return false;
            case port_session::wait_result::lost:
                session_.reset();
                break;
        }
    }
}

void port_seat::commit() {
    port_session& l = session();
    const device::kept_thread kept(may_use_gpu());
    const u64 ring_sequence = l.job().ring_sequence;
    if (l.commit(hash)) {
        has_frame_ = false;
        return;
    }
    has_frame_ = false;
    session_.reset();  // releases buffers for which other processes wait
    throw port_revoked(
        fmt::format("frame {} was not committed: port \"{}\" was given to another incarnation meanwhile (it "
                    "had the frame longer than frame_timeout_ms, or was stopped)",
                    ring_sequence, stage_));
}

// A claim is valid while its job is open. So an incarnation whose claim is not accepted ends, and its claim
// becomes void: it never writes the frame whose absence it has claimed.
void port_seat::end() {
    require_owner();
    const device::kept_thread kept(may_use_gpu());
    const u64 until = now_ns() + patience_ns();
    const auto left = [until] { return now_ns() < until ? until - now_ns() : 0; };
    while (!ended_) {
        if (!has_frame_ && !next(left())) {
            if (!ended_) throw_wait_timeout();
            return;
        }
        const port_session::wait_result result = session_->end_stream(until);
        const u64 ring_sequence = session_->job().ring_sequence;
        has_frame_ = false;
        session_.reset();
        ended_ = result == port_session::wait_result::closed;
        if (result == port_session::wait_result::nothing)
            throw nothing_new(
                fmt::format("port \"{}\" ends its stream before frame {}, and no supervisor has confirmed it "
                            "in {:.3g} s: {}",
                            stage_, ring_sequence, options_.patience_s, to_->stall_reason()));
    }
}

void port_seat::drop() noexcept {
    if (owner_.is_this() && has_frame_ && session_) session_->rest();
}

port_session& port_seat::session() const {
    require_owner();
    if (has_frame_ && session_) return *session_;
    throw config_error(
        fmt::format("port \"{}\" has no current frame: a frame ends with its commit()", stage_));
}

u64 port_seat::patience_ns() const noexcept { return nanoseconds_of(options_.patience_s); }

void port_seat::throw_wait_timeout() const {
    throw nothing_new(fmt::format("no {} for port \"{}\" in {:.3g} s: {}", writes_ ? "room" : "frame", stage_,
                                  options_.patience_s, to_->stall_reason()));
}

}  // namespace carousel
