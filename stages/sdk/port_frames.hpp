#pragma once
// Ports that take part in a run: a user's program is the source, or a sink, of a pipeline that names it in
// its file (run = "port"). Included by <carousel/port.hpp>, which has `latest`, a port that only observes.
//
//   for (auto& f : run.reader("analysis")) { show(f.plane<const u8>("color")); f.commit(); }
//   auto w = run.writer("camera");
//   while (auto f = w.next()) { fill(f.plane<u8>("color")); f.commit(); }
//
// A port is a seat that one program at a time holds; programs may start and end any number of times. A frame
// that a program had taken and not committed when it died is given to the next program: a reader gets the
// same frame, a writer the same frame number, for new content. So each frame is read exactly once, in order,
// and each number is written exactly once.
//
// Incarnations. A port joins the run by the socket in the run's folder and needs no other resource of the
// machine, so it also works from another PID namespace and in a container that has that folder. The run never
// signals or kills the program, and no function of a port ends the program. A program that keeps a frame
// longer than frame_timeout_ms (for its first frame first_frame_timeout_ms, 30 s), or is stopped for that
// time, is fenced: its seat is given to another program, its later commits are refused (port_revoked), and
// buffers that it may still write to are quarantined until it releases them. next() takes the seat again if
// it is free. After the death of the supervisor, the current frame can be committed, and next() waits up to
// wait_s for the next supervisor and takes the seat again.
//
// A program has one frame at a time. commit() returns when the frame is committed: after the work on its
// queue() and, for a reader, after its record in the run's ledger. commit() must be called before the next
// frame is requested; a writer's frame that is destroyed without commit() is issued again. Request a frame
// when its content is available, because the frame's timeout runs from next() to commit(). A writer
// determines the rate of its frames itself; the pipeline's fps determines only the frames' time_s.
//
// In addition to its planes a frame has metadata, a capture time and used extents of its planes, which a
// reader reads and a writer sets, as in a stage.
//
// End of stream. A writer may end its stream by writer_port::end() if the file has ends = true for its port.
//
// The planes are memory of the ring itself: nothing is copied. A reader's planes are mapped for reading.
// Pointers into planes are valid until the port requests its next frame or is destroyed. A frame belongs to
// its port, and a port is used by one thread at a time. A forked child must not touch the planes; its calls
// throw config_error, and destroying its copy of a port or a frame does nothing.
//
// Errors: config_error if there is no such port, if another program holds it, or if planes differ from those
// of the file; port_revoked; nothing_new as for `latest`; output_error if the ledger can't be written (commit
// again when there is space); shm_error, device_error, cuda_error.

#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/errors.hpp"
#include "core/process.hpp"
#include "core/types.hpp"
#include "device/backend.hpp"
#include "stages/sdk/metadata.hpp"
#include "stages/sdk/payload.hpp"

namespace carousel {

class port_seat;

/// Options of open_run::reader() and open_run::writer().
struct port_options {
    f64 patience_s = 10;  ///< time in seconds that next() waits for a frame before it throws nothing_new
    /// The planes that the program expects, in the notation of the file, e.g. {{"color", "u8[720,1280,4]"}};
    /// a reader names the planes of its first input. A port with other planes is refused at once; the
    /// message contains the expected and the actual planes. Empty: any planes.
    std::map<std::string, std::string> planes = {};
};

/// Thrown by commit() if the port has been given to another incarnation after the frame was taken. The frame
/// is then not committed, and the other incarnation gets it.
class port_revoked : public error {
public:
    explicit port_revoked(const std::string& message) : error(exit_code::revoked, message) {}
};

/// A frame that a port's program has taken and not yet committed.
class port_frame {
public:
    /// The frame's number, times and parameter number, which the functions below return one by one.
    [[nodiscard]] const shm::frame_meta& meta() const;
    [[nodiscard]] u64 frame_number() const {
        return meta().frame_number;
    }                                                           ///< like frame::frame_number() of a stage
    [[nodiscard]] u64 ring_sequence() const;                    ///< as frame::ring_sequence()
    [[nodiscard]] f64 time_s() const { return meta().time_s; }  ///< frame_number / fps, seconds
    /// The time when the frame's source began the frame, CLOCK_MONOTONIC in ns.
    [[nodiscard]] u64 born_ns() const { return meta().born_ns; }
    /// Capture time in ns, as set by the frame's source; 0: not set.
    [[nodiscard]] u64 capture_ns() const { return meta().capture_ns; }
    /// The kind of device whose memory holds the planes.
    [[nodiscard]] device::device_kind where() const;
    /// Enqueue GPU work here: commit() waits for it.
    [[nodiscard]] device::queue& queue() const;
    [[nodiscard]] void* stream() const;  ///< the queue's cudaStream_t; null if the planes are in host memory
    /// The run's parameters with which the frame is made, in the layout of open_run::parameters(); empty if
    /// the run has none.
    [[nodiscard]] std::span<const std::byte> parameter_bytes() const;
    /// Number of that parameter set: 0 at the start, incremented by each change.
    [[nodiscard]] u64 parameter_number() const { return meta().parameter_number; }

protected:
    explicit port_frame(port_seat* of) : seat_(of) {}
    port_seat* seat_;
};

/// Result of reader_port::next(): a frame that is to be read and then committed.
class reader_frame : public port_frame {
public:
    /// A plane of the first input, as in a stage. Throws config_error if there is no plane of that name or
    /// its element type differs.
    template <typename T>
    [[nodiscard]] plane_view<T> plane(std::string_view name) const {
        return input().plane<T>(name);
    }
    /// The planes of input `index`, in the file's order; read-only.
    [[nodiscard]] input_payload input(std::size_t index = 0) const;
    /// The metadata that the stages have set, read-only; several inputs are merged as at any join
    /// (frame/metadata.hpp).
    [[nodiscard]] frame_metadata metadata() const;
    /// Records a hash of the frame's input in the ledger, like frame::set_hash() of a stage. Before commit().
    void set_hash(u64 hash, std::string_view name = "own");
    /// Marks the frame as read. Throws port_revoked, output_error.
    void commit();

private:
    friend class reader_port;
    explicit reader_frame(port_seat* of) : port_frame(of) {}
    std::string hash_name_;
};

/// Result of writer_port::next(): true while it contains a frame.
class writer_frame : public port_frame {
public:
    writer_frame(writer_frame&& other) noexcept
        : port_frame(std::exchange(other.seat_, nullptr)), done_(other.done_) {}
    writer_frame& operator=(writer_frame&&) = delete;
    ~writer_frame();  ///< if commit() was not called, the number of the frame is issued again
    [[nodiscard]] explicit operator bool() const noexcept { return seat_ != nullptr; }
    template <typename T>
    [[nodiscard]] plane_view<T> plane(std::string_view name) const {
        return output().plane<T>(name);
    }
    /// The planes to fill; set_used() sets a plane's used extents.
    [[nodiscard]] output_payload output() const;
    /// The frame's metadata, which the stages downstream read. It can be changed until commit().
    [[nodiscard]] frame_metadata metadata() const;
    /// Sets the capture time, CLOCK_MONOTONIC of this machine in ns; 0: not known.
    void set_capture_ns(u64 ns);
    /// Publishes the frame to the stages downstream. Throws port_revoked.
    void commit();

private:
    friend class writer_port;
    explicit writer_frame(port_seat* of) : port_frame(of) {}
    bool done_ = false;
};

/// The seat of a reading port; see the top of this file. One thread at a time.
class reader_port {
public:
    reader_port(reader_port&&) noexcept;
    reader_port& operator=(reader_port&&) noexcept;
    ~reader_port();  ///< gives the seat back; an uncommitted frame goes to the next incarnation

    /// Returns the next frame; null: no frame arrived within `timeout_s` seconds, or the run is over. Frames
    /// that were abandoned upstream have no content: they are recorded and skipped. Throws config_error if
    /// the last frame was not committed.
    [[nodiscard]] reader_frame* next(f64 timeout_s);
    /// True after this port has handled every frame of the run, or after the run has ended.
    [[nodiscard]] bool ended() const noexcept;
    [[nodiscard]] const std::string& stage() const noexcept;
    /// Throws nothing_new, as the loop does; its text names the cause of the wait.
    [[noreturn]] void throw_wait_timeout() const;
    /// The format of an input.
    [[nodiscard]] const ring::frame_format& format(std::size_t input = 0) const;
    /// Returns the stages whose outputs the port reads.
    [[nodiscard]] const std::vector<std::string>& inputs() const noexcept;

    /// For range-based for: the sequence ends with the run.
    class iterator {
    public:
        [[nodiscard]] reader_frame& operator*() const noexcept { return *at_; }
        iterator& operator++() {
            at_ = of_->next_or_throw();
            return *this;
        }
        [[nodiscard]] bool operator==(std::default_sentinel_t) const noexcept { return at_ == nullptr; }

    private:
        friend class reader_port;
        explicit iterator(reader_port& of) : of_(&of), at_(of.next_or_throw()) {}
        reader_port* of_;
        reader_frame* at_;
    };
    [[nodiscard]] iterator begin() { return iterator(*this); }
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return std::default_sentinel; }

private:
    friend class open_run;
    explicit reader_port(owned_ptr<port_seat> s);
    [[nodiscard]] reader_frame* next_or_throw();
    owned_ptr<port_seat> seat_;
    reader_frame frame_;
};

/// The seat of a writing port; see the top of this file. One thread at a time.
class writer_port {
public:
    writer_port(writer_port&&) noexcept;
    writer_port& operator=(writer_port&&) noexcept;
    ~writer_port();

    /// Takes the buffer for the next frame number, which the program must then fill. Returns false if the run
    /// is over. Throws nothing_new if the ring has had no free buffer for patience_s.
    [[nodiscard]] writer_frame next();
    /// Like next(), but with a timeout in seconds; also returns false if no buffer became free in time.
    [[nodiscard]] writer_frame next(f64 timeout_s);
    /// Ends the stream before the next frame, or before the current one, which is dropped: the run ends when
    /// all frames before it are delivered. Returns once the run has accepted the end of stream; if the
    /// program dies before that, the stream has not ended, and the next program continues it. Throws
    /// config_error if the file does not have `ends = true` for this port; nothing_new if no supervisor
    /// accepts the end within patience_s.
    void end();
    [[nodiscard]] bool ended() const noexcept;
    [[nodiscard]] const std::string& stage() const noexcept;
    /// Throws nothing_new, whose text names the cause of the wait.
    [[noreturn]] void throw_wait_timeout() const;
    /// The format of the output.
    [[nodiscard]] const ring::frame_format& format() const;

private:
    friend class open_run;
    explicit writer_port(owned_ptr<port_seat> s);
    owned_ptr<port_seat> seat_;
};

}  // namespace carousel
