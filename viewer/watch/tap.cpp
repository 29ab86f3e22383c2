#include "viewer/watch/tap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "run/memory_message.hpp"
#include "run/tap_message.hpp"
#include "shm/doorbell.hpp"

namespace carousel::viewer {
namespace {
using nlohmann::json;

}  // namespace

tap::tap(shm::control_block& c, const std::string& socket_path, const std::string& stage, interop_maker make,
         picture_way way)
    : control_(&c) {
    ask(socket_path, stage);
    if (link_ >= std::min(c.links, shm::max_links))
        throw shm_error("the supervisor's answer names a link that the run doesn't have");
    slot_bytes_ = c.link[link_].slot_bytes;
    const ring::plane* color = format_.find("color");
    if (format_.type != "carousel.image.rgba8" || color == nullptr || color->type != ring::element::u8_ ||
        color->shape.size() != 3 || color->shape[2] != 4)
        throw config_error(fmt::format("{} puts out {}: the viewer shows carousel.image.rgba8 pictures",
                                       stage_, format_.describe()));
    height_ = static_cast<u32>(color->shape[0]);
    width_ = static_cast<u32>(color->shape[1]);
    offset_ = color->offset;
    const u64 bytes = u64{width_} * height_ * 4;
    const u64 slots = std::min(c.link[link_].slots, shm::max_slots);
    if (width_ == 0 || height_ == 0 || width_ > 16384 || height_ > 16384 || offset_ + bytes > slot_bytes_ ||
        slot_bytes_ * slots > memory_.bytes)
        throw shm_error(
            fmt::format("a {} x {} picture doesn't fit the ring's memory ({} slots of {} bytes in {})",
                        width_, height_, slots, slot_bytes_, memory_.bytes));
    open_device(make, way);
    reader_ = std::make_unique<ring::latest_reader>(c, link_, entry_);
    if (!reader_->joined())
        throw config_error(
            fmt::format("all {} places for viewers and displays at the ring of {} are taken: close one",
                        shm::max_latest, stage_));
    thread_ = std::thread([this] { loop(); });
}

tap::~tap() {
    if (!thread_.joinable()) return;
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
}

void tap::ask(const std::string& socket_path, const std::string& stage) {
    socket_ = shm::connect_to(socket_path);
    if (!socket_) throw shm_error(fmt::format("no supervisor at {}: {}", socket_path, errno_text(errno)));
    if (!shm::send_message(socket_.get(), run::to_json(run::tap_request{stage}).dump()))
        throw shm_error(fmt::format("asking the supervisor for the picture: {}", errno_text(errno)));
    shm::message m;
    if (shm::receive_message(socket_.get(), m, 2 * ns_per_s) != shm::receive_status::ok)
        throw shm_error(
            "the supervisor sent no picture memory within 2 s: is it stopped, or of another version?");
    fds_ = std::move(m.fds);
    try {
        read_answer(m.text);
    } catch (const json::exception& e) {
        throw shm_error(fmt::format(
            "the supervisor's answer can't be read: {}: are both programs of one version?", e.what()));
    }
}

void tap::read_answer(const std::string& text) {
    const run::tap_answer a = run::read_tap(json::parse(text));
    if (a.run_id != std::string(control_->run_id))
        throw shm_error("another run answers at the control socket: the one that is watched has ended");
    link_ = a.link;
    stage_ = a.stage;
    entry_ = a.entry;
    format_ =
        ring::frame_format::from_json(a.format.is_string() ? a.format.get<std::string>() : a.format.dump());
    memory_ = run::read_memory(a.memory, fds_);
    device_id_ = a.device;
}

// The ring's memory decides: host memory is read by the CPU also where a GPU fills it.
void tap::open_device(interop_maker make, picture_way way) {
    const bool gpu = memory_.kind != device::memory_kind::memfd;
    device::device_id id;
    if (gpu) {
        // A viewer in the MPS domain would share the stages' fate, and they its.
        ::setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent-outside-mps", 1);
        id.kind = device::device_kind::cuda;
        id.uuid = memory_.uuid.empty() ? device_id_.uuid : memory_.uuid;
    }
    context_ = device::open(id, 1);
    queue_ = context_->make_queue();
    ring_ = context_->map(memory_, device::access::read);
    const u64 bytes = u64{width_} * height_ * 4;
    torn_ = context_->allocate_host(sizeof(u32));
    event_ = context_->make_event(&event_word_);
    std::string why_not = "there is no GL";
    if (way == picture_way::copy) why_not = "asked for with --path copy";
    if (!gpu) why_not = "the ring lies in host memory";
    if (gpu && make != nullptr && way != picture_way::copy) interop_ = make(id, bytes, why_not);
    if (way == picture_way::interop && !interop_)
        throw config_error(fmt::format("no CUDA-GL interop (--path interop): {}", why_not));
    for (auto* to : {&front_, &ready_, &back_})
        *to = interop_ ? context_->allocate(bytes) : context_->allocate_host(bytes);
    if (interop_) window_queue_ = context_->make_queue();
    path_ = !gpu       ? "plain upload (host memory)"
            : interop_ ? "CUDA-GL interop"
                       : fmt::format("copy through host memory ({})", why_not);
}

// Leases the newest frame and copies it into back_. True: it is whole and lies in ready_.
bool tap::take_one() {
    const ring::slot_ref slot = reader_->acquire();
    if (!slot) return false;
    const u64 began = now_ns();
    const shm::frame_header& h = control_->link[link_].header[slot.index];
    if (h.void_stage != shm::none) {
        const bool whole = reader_->release();
        const std::lock_guard lock(mutex_);
        ++(whole ? losses_.voids : losses_.revoked);
        return false;
    }
    std::byte* const at = ring_->data() + slot.index * slot_bytes_;
    const auto* status = reinterpret_cast<const device::status_word*>(at);
    const device::status_word expected{slot.sequence, h.epoch, static_cast<u32>(device::status_state::ready)};
    auto* torn = reinterpret_cast<u32*>(torn_->data());
    *reinterpret_cast<volatile u32*>(torn_->host_data()) = 0;
    queue_->check_status(status, expected, torn);
    queue_->copy(back_->data(), at + offset_, u64{width_} * height_ * 4);
    queue_->check_status(status, expected, torn);
    event_->record(*queue_, slot.sequence);
    event_->wait();
    const bool whole = reader_->release(), fits = *reinterpret_cast<volatile u32*>(torn_->host_data()) == 0;
    const std::lock_guard lock(mutex_);
    if (!whole || !fits) {
        ++(whole ? losses_.torn : losses_.revoked);
        return false;
    }
    std::swap(back_, ready_);
    ready_sequence_ = slot.sequence;
    ready_ms_ = static_cast<f64>(now_ns() - began) / 1e6;
    fresh_ = true;
    wanted_ = false;
    return true;
}

void tap::loop() {
    // Rung at every change of the ring; the reader's bell rather than the producer's, which rings for its
    // inputs too.
    const shm::link_block& l = control_->link[link_];
    const u32 reader = l.blocking > 0 ? l.group_stage[0] : l.stage;
    shm::doorbell_word& bell = control_->stage[std::min(reader, shm::max_stages - 1)].doorbell;
    try {
        for (;;) {
            {
                std::unique_lock lock(mutex_);
                wake_.wait(lock, [this] { return stop_ || wanted_; });
                if (stop_) return;
            }
            const u32 seen = shm::ticket(bell);
            if (!take_one()) shm::wait(bell, seen, 20 * ns_per_ms);
        }
    } catch (const std::exception& e) {
        const std::lock_guard lock(mutex_);
        failure_ = e.what();
    }
}

bool tap::poll() {
    {
        const std::lock_guard lock(mutex_);
        if (!failure_.empty()) throw device_error(failure_);
        if (!fresh_) return false;
        std::swap(front_, ready_);
        sequence_ = ready_sequence_;
        copy_ms_ = ready_ms_;
        fresh_ = false;
        wanted_ = true;
    }
    wake_.notify_all();
    return true;
}

void tap::refresh() {
    {
        const std::lock_guard lock(mutex_);
        fresh_ = false;
        wanted_ = true;
    }
    wake_.notify_all();
}

discarded tap::losses() {
    const std::lock_guard lock(mutex_);
    return losses_;
}

void tap::show(unsigned texture) {
    if (!interop_) return;
    interop_->copy(*window_queue_, front_->data());
    interop_->show(texture, width_, height_);
}

}  // namespace carousel::viewer
