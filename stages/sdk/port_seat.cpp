#include "stages/sdk/port_seat.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "device/bind_thread.hpp"
#include "ring/format_text.hpp"
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
            if (come_in()) break;
        } catch (const port_taken&) {  // its holder may have died this very moment
            if (last) throw;
        } catch (const shm_error&) {  // a supervisor that is beginning, or taking the run over
            if (last) throw;
        }
    }
    inputs_ = life_->inputs();
    input_names_ = life_->input_names();
    output_ = life_->output();
    check_planes();
}

// Not called in a forked child: who has a seat has it by owned_ptr.
port_seat::~port_seat() {
    const device::kept_thread kept(may_come_to_a_gpu());
    life_.reset();
}

// A life that is to come may be on one.
bool port_seat::may_come_to_a_gpu() const noexcept {
    return !life_ || life_->where() == device::device_kind::cuda;
}

bool port_seat::come_in() {
    life_ = owned_ptr<port_session>(new port_session(
        folder_, stage_, writes_,
        [this](const device::device_id& id) -> device::context& { return *to_->device_named_by(id); }));
    alone_since_ns_ = 0;
    return true;
}

void port_seat::check_planes() const {
    if (options_.planes.empty()) return;
    const ring::frame_format& offered = writes_ ? output_ : inputs_.front();
    for (const auto& [name, text] : options_.planes) {
        const ring::plane expected = ring::plane_from_text(name, text), *there = offered.find(name);
        if (there == nullptr || there->type != expected.type || there->shape != expected.shape)
            throw config_error(
                fmt::format("port \"{}\" has frames of {}, but this program counts on {} = \"{}\"", stage_,
                            offered.describe(), name, text));
    }
}

// Without a supervisor the run may be taken over; so long it is waited for, as at opening.
bool port_seat::run_is_over(u64 now) {
    const std::optional<run::record> r = run::read_record(folder_);
    if (!r || r->run_id != run_id_) return true;
    if (alone_since_ns_ == 0) alone_since_ns_ = now;
    return now > alone_since_ns_ + nanoseconds_of(to_->options().wait_s);
}

bool port_seat::come_back(u64 until_ns) {
    for (;; ::usleep(try_again_us)) {
        try {
            return come_in();
        } catch (const port_taken&) {
            alone_since_ns_ = 0;
        } catch (const shm_error&) {
            ended_ = run_is_over(now_ns());
        } catch (const config_error&) {  // it was let in once: what is refused for good now is the run's end
            ended_ = true;
        }
        if (ended_ || now_ns() >= until_ns) return false;
    }
}

void port_seat::require_owner() const { require_port_owner(owner_, stage_); }

bool port_seat::next(u64 timeout_ns) {
    require_owner();
    if (ended_) return false;
    if (in_hand_ && !writes_)
        throw config_error(
            fmt::format("frame {} of port \"{}\" was not committed before the next one was asked for: "
                        "the run waits for its commit()",
                        life_->job().ring_sequence, stage_));
    if (in_hand_) {
        life_->give_again();
        return true;
    }
    const device::kept_thread kept(may_come_to_a_gpu());
    const u64 until = now_ns() + timeout_ns;
    for (;;) {
        if (!life_ && !come_back(until)) return false;
        switch (life_->begin(until)) {
            case port_session::got::frame:
                hash = std::nullopt;
                return in_hand_ = true;
            case port_session::got::nothing:
                return false;
            case port_session::got::closed:
                ended_ = true;
                life_.reset();
                return false;
            case port_session::got::lost:
                life_.reset();
                break;
        }
    }
}

void port_seat::commit() {
    port_session& l = life();
    const device::kept_thread kept(may_come_to_a_gpu());
    const u64 ring_sequence = l.job().ring_sequence;
    if (l.commit(hash)) {
        in_hand_ = false;
        return;
    }
    in_hand_ = false;
    life_.reset();  // buffers that others wait for
    throw port_revoked(
        fmt::format("frame {} was not committed: port \"{}\" has been given to another life meanwhile (it "
                    "had the frame longer than frame_timeout_ms, or was stopped)",
                    ring_sequence, stage_));
}

// A claim stands as long as its job is open. So a life that is not heard is given up, with what it has said:
// it never writes the frame of which it has said that it is not there.
void port_seat::end() {
    require_owner();
    const device::kept_thread kept(may_come_to_a_gpu());
    const u64 until = now_ns() + patience_ns();
    const auto left = [until] { return now_ns() < until ? until - now_ns() : 0; };
    while (!ended_) {
        if (!in_hand_ && !next(left())) {
            if (!ended_) refuse_to_wait();
            return;
        }
        const port_session::got heard = life_->end_stream(until);
        const u64 ring_sequence = life_->job().ring_sequence;
        in_hand_ = false;
        life_.reset();
        ended_ = heard == port_session::got::closed;
        if (heard == port_session::got::nothing)
            throw nothing_new(
                fmt::format("port \"{}\" ends its stream before frame {}, and no supervisor has heard it in "
                            "{:.3g} s: {}",
                            stage_, ring_sequence, options_.patience_s, to_->what_holds_it_up()));
    }
}

void port_seat::drop() noexcept {
    if (owner_.is_this() && in_hand_ && life_) life_->rest();
}

port_session& port_seat::life() const {
    require_owner();
    if (in_hand_ && life_) return *life_;
    throw config_error(
        fmt::format("port \"{}\" has no frame in hand: a frame ends with its commit()", stage_));
}

u64 port_seat::patience_ns() const noexcept { return nanoseconds_of(options_.patience_s); }

void port_seat::refuse_to_wait() const {
    throw nothing_new(fmt::format("no {} for port \"{}\" in {:.3g} s: {}", writes_ ? "room" : "frame", stage_,
                                  options_.patience_s, to_->what_holds_it_up()));
}

}  // namespace carousel
