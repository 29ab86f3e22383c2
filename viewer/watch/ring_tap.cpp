#include "viewer/watch/ring_tap.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <utility>

#include "core/clock.hpp"
#include "core/errors.hpp"

namespace carousel::viewer {

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
    out.width = picture_.width;
    out.height = picture_.height;
    return out;
}

// The ring's memory is authoritative: the CPU reads host memory even if a GPU fills it.
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

// A picture that stays on the GPU is shown as a whole; the used part is reported only in the frame's
// metadata.
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
