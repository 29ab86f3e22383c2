#include "viewer/watch/tap.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "shm/doorbell.hpp"

namespace carousel::viewer {
namespace {

constexpr u32 gap = 8;  ///< pixels between two pictures
constexpr u64 pair_patience_ns = 500 * ns_per_ms, pair_poll_ns = 5 * ns_per_ms;

}  // namespace

tap::tap(shm::control_block& c, const std::string& socket_path, const picture_choice& what,
         interop_maker make, picture_way way, const picture_styles& styles)
    : styles_(styles) {
    const bool two = what.compare.has_value();
    first_ = std::make_unique<ring_tap>(c, socket_path, what.first, two ? nullptr : make, way);
    if (two)
        compared_ = std::make_unique<ring_tap>(c, socket_path, *what.compare, nullptr, picture_way::copy);
    lay_out();
    for (shot* s : {&front_, &ready_, &back_}) {
        for (std::size_t k = 0; k < places_.size(); ++k) s->frame[k] = of(k).make_room();
        s->shown = places_;
        if (two || !first_->picture().is_rgba()) s->rgba.resize(std::size_t{width_} * height_ * 4);
    }
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

// Enlarges the smaller of two pictures, so that each of its pixels stays visible. The factor is the largest
// integer with which the picture fits.
void tap::lay_out() {
    places_.push_back(first_->about());
    if (compared_) {
        places_.push_back(compared_->about());
        shown_picture &a = places_[0], &b = places_[1];
        shown_picture &small = u64{a.width} * a.height < u64{b.width} * b.height ? a : b,
                      &large = &small == &a ? b : a;
        small.zoom = std::max(1U, std::min(large.width / small.width, large.height / small.height));
        b.x = a.width * a.zoom + gap;
    }
    for (const shown_picture& p : places_) {
        width_ = std::max(width_, p.x + p.width * p.zoom);
        height_ = std::max(height_, p.y + p.height * p.zoom);
    }
}

const std::byte* tap::pixels() const noexcept {
    if (on_gpu()) return nullptr;
    return front_.rgba.empty() ? front_.frame[0].bytes->host_data() : front_.rgba.data();
}

void tap::paint_one(shot& s, std::size_t which, std::byte* to) const {
    s.shown[which].scale = to_rgba(of(which).picture(), s.frame[which].bytes->host_data(), to,
                                   s.styles.of[which], s.frame[which].used);
}

void tap::paint(shot& s, const picture_styles& styles) const {
    s.styles = styles;
    for (std::size_t k = 0; k < places_.size(); ++k) {
        s.shown[k].ring_sequence = s.frame[k].ring_sequence;
        s.shown[k].carried = s.frame[k].carried;
    }
    if (!compared_ && s.rgba.empty()) {
        if (!on_gpu()) blacken_unused(width_, height_, s.frame[0].used, s.frame[0].bytes->host_data());
        return;
    }
    if (!compared_) return paint_one(s, 0, s.rgba.data());
    for (std::size_t k = 0; k < places_.size(); ++k) {
        const shown_picture& p = places_[k];
        s.part.resize(std::max(s.part.size(), std::size_t{p.width} * p.height * 4));
        paint_one(s, k, s.part.data());
        for (u32 y = 0; y < p.height * p.zoom; ++y) {
            const std::byte* from = s.part.data() + std::size_t{y / p.zoom} * p.width * 4;
            std::byte* to = s.rgba.data() + (std::size_t{p.y + y} * width_ + p.x) * 4;
            if (p.zoom == 1)
                std::memcpy(to, from, std::size_t{p.width} * 4);
            else
                for (u32 x = 0; x < p.width * p.zoom; ++x)
                    std::memcpy(to + std::size_t{x} * 4, from + std::size_t{x / p.zoom} * 4, 4);
        }
    }
}

bool tap::is_stopping() {
    const std::lock_guard lock(mutex_);
    return stop_;
}

// Takes the frame that was shown last. The frame is copied and not moved, because the window's thread also
// reads it, in front_ or ready_.
bool tap::take_shown(std::size_t which) {
    const std::lock_guard lock(mutex_);
    const shot& last = fresh_ ? ready_ : front_;
    if (!last.there) return false;
    const taken_frame& from = last.frame[which];
    taken_frame& to = back_.frame[which];
    std::memcpy(to.bytes->host_data(), from.bytes->host_data(), of(which).picture().bytes);
    to.ring_sequence = from.ring_sequence;
    to.took_ms = 0;
    to.used = from.used;
    to.carried = from.carried;
    return true;
}

// Takes the newest frame of the leading ring, then the same frame of the other ring. If only the other ring
// has a new frame, that frame is shown next to the last frame of the leading ring, with a note.
bool tap::take_pair() {
    const std::size_t lead = compared_leads_ ? 1 : 0;
    const bool leads = of(lead).take(back_.frame[lead]);
    const std::size_t first = leads ? lead : 1 - lead, other = 1 - first;
    ring_tap &ahead = of(first), &trailing = of(other);
    taken_frame &a = back_.frame[first], &b = back_.frame[other];
    if (!leads && !ahead.take(a)) return false;
    const u64 began = now_ns();
    if (unpaired_since_ns_ == 0) unpaired_since_ns_ = began;
    // If the frame can no longer arrive in the other ring, it was in the other ring first, or both rings get
    // their frames equally fast. From now on the other ring leads.
    if (leads && !trailing.may_arrive(a.ring_sequence)) compared_leads_ = !compared_leads_;
    while (trailing.may_arrive(a.ring_sequence) && now_ns() < began + pair_patience_ns && !is_stopping()) {
        const u32 seen = shm::ticket(trailing.bell());
        if (trailing.take(b, a.ring_sequence)) {
            unpaired_since_ns_ = 0;
            back_.note.clear();
            return true;
        }
        shm::wait(trailing.bell(), seen, pair_poll_ns);
    }
    if (now_ns() < unpaired_since_ns_ + pair_patience_ns) return false;
    if (!trailing.take(b) && !take_shown(other)) return false;
    unpaired_since_ns_ = 0;
    back_.note =
        back_.frame[0].ring_sequence == back_.frame[1].ring_sequence
            ? ""
            : fmt::format(
                  "frames {} and {} are shown together, because no frame was in both rings for {:.1f} s",
                  back_.frame[0].ring_sequence, back_.frame[1].ring_sequence,
                  static_cast<f64>(pair_patience_ns) / 1e9);
    return true;
}

bool tap::take_frames() { return compared_ ? take_pair() : first_->take(back_.frame[0]); }

// Copies the newest frame into back_, then swaps it into ready_. Returns true if the frame is complete.
bool tap::take_one() {
    const bool taken = take_frames();
    picture_styles styles;
    {
        const std::lock_guard lock(mutex_);
        styles = styles_;
    }
    if (taken) paint(back_, styles);
    const std::lock_guard lock(mutex_);
    losses_ = first_->losses();
    if (compared_) {
        losses_.revoked += compared_->losses().revoked;
        losses_.torn += compared_->losses().torn;
        losses_.tombstones += compared_->losses().tombstones;
    }
    if (!taken) return false;
    back_.there = true;
    std::swap(back_, ready_);
    fresh_ = true;
    wanted_ = false;
    return true;
}

void tap::loop() {
    try {
        for (;;) {
            {
                std::unique_lock lock(mutex_);
                wake_.wait(lock, [this] { return stop_ || wanted_; });
                if (stop_) return;
            }
            shm::doorbell_word& bell = of(compared_ && compared_leads_ ? 1 : 0).bell();
            const u32 seen = shm::ticket(bell);
            if (!take_one()) shm::wait(bell, seen, 20 * ns_per_ms);
        }
    } catch (const std::exception& e) {
        const std::lock_guard lock(mutex_);
        failure_ = e.what();
    }
}

bool tap::poll() {
    picture_styles styles;
    {
        const std::lock_guard lock(mutex_);
        if (!failure_.empty()) throw device_error(failure_);
        if (!fresh_) return false;
        std::swap(front_, ready_);
        styles = styles_;
        fresh_ = false;
        wanted_ = true;
    }
    wake_.notify_all();
    if (!(front_.styles == styles)) paint(front_, styles);
    return true;
}

bool tap::set_styles(const picture_styles& styles) {
    {
        const std::lock_guard lock(mutex_);
        if (styles_ == styles) return false;
        styles_ = styles;
    }
    if (!front_.there || front_.rgba.empty()) return false;
    paint(front_, styles);
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

std::optional<pointed_pixel> tap::pixel_at(u32 x, u32 y) const {
    if (!front_.there || on_gpu()) return std::nullopt;
    for (std::size_t k = 0; k < places_.size(); ++k) {
        const shown_picture& p = places_[k];
        if (x < p.x || y < p.y || x >= p.x + p.width * p.zoom || y >= p.y + p.height * p.zoom) continue;
        pointed_pixel out{k, (x - p.x) / p.zoom, (y - p.y) / p.zoom, front_.frame[k].ring_sequence, {}};
        const bool used = out.x < front_.frame[k].used.width && out.y < front_.frame[k].used.height;
        out.text = used ? pixel_text(of(k).picture(), front_.frame[k].bytes->host_data(), out.x, out.y)
                        : "not in use";
        return out;
    }
    return std::nullopt;
}

ring_tap::ring_tap(shm::control_block& c, const std::string& socket_path, const plane_choice& what,
                   interop_maker make, picture_way way) {
    run::mapped_ring ring = run::map_ring(c, socket_path, what.stage);
    stage_ = ring.stage;
    format_ = ring.format;
    choose_plane(ring, what.plane);
    open_device(ring, make, way);
    newest_ = std::make_unique<carousel::session::newest_frame>(c, std::move(ring), *context_);
}

void ring_tap::choose_plane(const run::mapped_ring& ring, const std::string& plane) {
    const std::optional<plane_picture> shown = picture_of(ring.format, plane);
    if (!shown && plane.empty())
        throw config_error(
            fmt::format("{} writes {}: none of its planes has rows and columns of 1 to 4 values", stage_,
                        ring.format.describe()));
    if (!shown)
        throw config_error(
            fmt::format("{} writes {}: it has no plane \"{}\" that is a picture; pictures are: {}", stage_,
                        ring.format.describe(), plane, fmt::join(about().planes, ", ")));
    picture_ = *shown;
}

void stay_outside_mps() noexcept { ::setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent-outside-mps", 1); }

shown_picture ring_tap::about() const {
    shown_picture out;
    out.stage = stage_;
    out.plane = picture_.name;
    out.type = picture_.kind == picture_kind::nv12 ? "NV12" : ring::name_of(picture_.type);
    for (const plane_picture& p : pictures_of(format_)) out.planes.push_back(p.name);
    for (const colour_map m : maps_of(picture_)) out.maps.emplace_back(name_of(m));
    out.channels = picture_.channel_names;
    out.width = picture_.width;
    out.height = picture_.height;
    return out;
}

// The kind of the ring's memory determines the device: host memory is read by the CPU, even if a GPU fills
// it.
void ring_tap::open_device(const run::mapped_ring& ring, interop_maker make, picture_way way) {
    const bool gpu = ring.memory.kind != device::memory_kind::memfd;
    device::device_id id;
    if (gpu) {
        id.kind = device::device_kind::cuda;
        id.uuid = ring.memory.uuid.empty() ? ring.device.uuid : ring.memory.uuid;
    }
    context_ = device::open(id, 1);
    queue_ = context_->make_queue();
    std::string why_not = "there is no GL";
    if (way == picture_way::copy) why_not = "requested with --path copy";
    if (!gpu) why_not = "the ring is in host memory";
    if (!picture_.is_rgba())
        why_not = fmt::format("the CPU converts the plane {} to a picture", picture_.name);
    if (gpu && picture_.is_rgba() && make != nullptr && way != picture_way::copy)
        interop_ = make(id, picture_.bytes, why_not);
    if (way == picture_way::interop && !interop_)
        throw config_error(fmt::format("no CUDA-GL interop (--path interop): {}", why_not));
    if (interop_) window_queue_ = context_->make_queue();
    path_ = !gpu       ? "plain upload (host memory)"
            : interop_ ? "CUDA-GL interop"
                       : fmt::format("copy through host memory ({})", why_not);
}

taken_frame ring_tap::make_room() {
    taken_frame out;
    out.bytes = interop_ ? context_->allocate(picture_.bytes) : context_->allocate_host(picture_.bytes);
    return out;
}

// If a picture stays on the GPU, the whole picture is shown, and its used part is only reported in the
// frame's metadata.
bool ring_tap::take(taken_frame& to, u64 only) {
    carousel::session::newest_frame::about what;
    if (!newest_->take(*queue_, to.bytes->data(), picture_.offset, picture_.bytes, what, only)) return false;
    to.ring_sequence = what.ring_sequence;
    to.took_ms = static_cast<f64>(what.took_ns) / 1e6;
    to.used = picture_.used_of(format_, what.used);
    to.carried = carried_by(what, format_, now_ns());
    return true;
}

void ring_tap::show(const taken_frame& f, unsigned texture) {
    if (!interop_) return;
    interop_->copy(*window_queue_, f.bytes->data());
    interop_->show(texture, picture_.width, picture_.height);
}

}  // namespace carousel::viewer
