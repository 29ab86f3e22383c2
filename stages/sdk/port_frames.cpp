#include "stages/sdk/port_frames.hpp"

#include <utility>

#include <carousel/port.hpp>
#include "core/clock.hpp"
#include "device/backend.hpp"
#include "stages/sdk/port_seat.hpp"

namespace carousel {

const shm::frame_meta& port_frame::meta() const { return seat_->session().job(); }
u64 port_frame::ring_sequence() const { return seat_->session().job().ring_sequence; }
device::device_kind port_frame::where() const { return seat_->session().where(); }
device::queue& port_frame::queue() const { return seat_->session().queue(); }
void* port_frame::stream() const {
    return where() == device::device_kind::cuda ? queue().native_stream() : nullptr;
}

input_payload reader_frame::input(std::size_t index) const {
    const port_session& session = seat_->session();
    return {session.input_slot(index), &seat_->inputs()[index], session.input_used(index)};
}
frame_metadata reader_frame::metadata() const { return frame_metadata(seat_->session().read_metadata()); }
std::span<const std::byte> port_frame::parameter_bytes() const { return seat_->session().parameter_bytes(); }
void reader_frame::set_hash(u64 hash, std::string_view name) {
    (void)seat_->session();
    hash_name_ = name;
    seat_->hash = telemetry::frame_hash(hash, hash_name_);
}
void reader_frame::commit() { seat_->commit(); }

writer_frame::~writer_frame() {
    if (seat_ != nullptr && !done_) seat_->drop();
}
output_payload writer_frame::output() const {
    port_session& session = seat_->session();
    return {session.output_slot(), &seat_->output(), &session.header().used};
}
frame_metadata writer_frame::metadata() const {
    shm::frame_header& h = seat_->session().header();
    return {h.metadata, h.metadata_bytes};
}
void writer_frame::set_capture_ns(u64 ns) { seat_->session().set_capture_ns(ns); }
void writer_frame::commit() {
    done_ = true;
    seat_->commit();
}

reader_port::reader_port(owned_ptr<port_seat> s) : seat_(std::move(s)), frame_(seat_.get()) {}
reader_port::reader_port(reader_port&&) noexcept = default;
reader_port& reader_port::operator=(reader_port&&) noexcept = default;
reader_port::~reader_port() = default;
bool reader_port::ended() const noexcept { return seat_->ended(); }
const std::string& reader_port::stage() const noexcept { return seat_->stage(); }
const ring::frame_format& reader_port::format(std::size_t input) const { return seat_->inputs().at(input); }
const std::vector<std::string>& reader_port::inputs() const noexcept { return seat_->input_names(); }
void reader_port::throw_wait_timeout() const { seat_->throw_wait_timeout(); }
reader_frame* reader_port::next(f64 timeout_s) {
    return seat_->next(nanoseconds_of(timeout_s)) ? &frame_ : nullptr;
}
reader_frame* reader_port::next_or_throw() {
    if (seat_->next(seat_->patience_ns())) return &frame_;
    if (!seat_->ended()) seat_->throw_wait_timeout();
    return nullptr;
}

writer_port::writer_port(owned_ptr<port_seat> s) : seat_(std::move(s)) {}
writer_port::writer_port(writer_port&&) noexcept = default;
writer_port& writer_port::operator=(writer_port&&) noexcept = default;
writer_port::~writer_port() = default;
bool writer_port::ended() const noexcept { return seat_->ended(); }
const std::string& writer_port::stage() const noexcept { return seat_->stage(); }
const ring::frame_format& writer_port::format() const { return seat_->output(); }
void writer_port::throw_wait_timeout() const { seat_->throw_wait_timeout(); }
void writer_port::end() { seat_->end(); }
writer_frame writer_port::next(f64 timeout_s) {
    return writer_frame(seat_->next(nanoseconds_of(timeout_s)) ? seat_.get() : nullptr);
}
writer_frame writer_port::next() {
    if (seat_->next(seat_->patience_ns())) return writer_frame(seat_.get());
    if (!seat_->ended()) seat_->throw_wait_timeout();
    return writer_frame(nullptr);
}

// Saves the current device here and not in the seat's constructor, because a seat that is refused is
// destroyed while the exception unwinds.
reader_port open_run::reader(const std::string& stage, const port_options& options) const {
    to_->require_owner();
    const device::kept_thread kept;
    return reader_port(owned_ptr<port_seat>(new port_seat(to_, stage, false, options)));
}
writer_port open_run::writer(const std::string& stage, const port_options& options) const {
    to_->require_owner();
    const device::kept_thread kept;
    return writer_port(owned_ptr<port_seat>(new port_seat(to_, stage, true, options)));
}

}  // namespace carousel
