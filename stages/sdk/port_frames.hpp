#pragma once
// Ports that take part in a run: a program of one's own is the source, or a sink, of a pipeline that names it
// in its file (run = "port"). Included by <carousel/port.hpp>; `latest`, which only looks on, stands there.
//
//   for (auto& f : run.reader("analysis")) { look_at(f.plane<const u8>("color")); f.commit(); }
//   auto w = run.writer("camera");
//   while (auto f = w.next()) { fill(f.plane<u8>("color")); f.commit(); }
//
// A port is a place, and one program at a time has it: in any number of lives. What a program had taken and
// not committed when it died goes to the next one: to a reader the same frame, to a writer the same number,
// for new content. So each frame is read exactly once, in order, and each number is written exactly once.
//
// Lives. A port joins the run by the socket in its folder, and needs nothing else of the machine: it works
// from another PID namespace and in a container that has that folder. The run never signals or kills the
// program, and no call here ends it. One that keeps a frame longer than frame_timeout_ms (its first one
// longer than first_frame_timeout_ms, 30 s), or is stopped so long, is fenced: its place is another's, what
// it commits then is refused (port_revoked), and buffers that it may still write to are kept from others
// until it lets go of them. next() takes the place again if it is free. Likewise behind the death of the
// supervisor: a frame in hand can be committed, next() waits for the next supervisor, wait_s long.
//
// One frame at a time. commit() returns when the frame has happened: behind the work on its queue(), and for
// a reader behind its record in the run's ledger. It must come before the next frame is asked for; a writer's
// frame that is dropped without it is given once more.
// Ask for a frame when there is something to put into it: the frame's clock runs from next() to commit(). fps
// of the pipeline gives times, not the pace: the writer has its own.
//
// What a frame carries beside its planes a reader reads and a writer sets, as in a stage: metadata, the time
// of its capture, what of its planes is in use.
//
// The end. A writer may end its stream, where the file says so of its port (ends = true): writer_port::end().
//
// Planes lie in the ring itself, nothing is copied. A reader's are mapped for reading. They are gone when the
// port is, and when its next frame is asked for: pointers into them end there, too. A frame belongs to its
// port, a port to one thread at a time. A forked child must not touch the planes; its calls throw
// config_error, and destroying its copy of a port or a frame does nothing.
//
// Errors: config_error: no such port, another program has it, planes that are not what the file says;
// port_revoked; nothing_new as for `latest`; output_error: the ledger can't be written (commit again when
// there is room); shm_error, device_error, cuda_error.

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
#include "core/owner_process.hpp"
#include "core/types.hpp"
#include "device/backend.hpp"
#include "stages/sdk/metadata.hpp"
#include "stages/sdk/payload.hpp"

namespace carousel {

class port_seat;

struct port_options {
    f64 patience_s = 10;  ///< of next(), for a frame: behind it nothing_new is thrown
    /// What the program counts on: planes as the file writes them, e.g. {{"color", "u8[720,1280,4]"}}; of a
    /// reader: of its first input. Others are refused at once, with both. Empty: whatever the port has.
    std::map<std::string, std::string> planes = {};
};

/// The frame was not committed: the port has been given to another life meanwhile. The next one gets it.
class port_revoked : public error {
public:
    explicit port_revoked(const std::string& message) : error(exit_code::revoked, message) {}
};

/// A frame in the hands of a port's program.
class port_frame {
public:
    [[nodiscard]] u64 frame_number() const;   ///< as frame::frame_number() of a stage
    [[nodiscard]] u64 ring_sequence() const;  ///< as frame::ring_sequence()
    [[nodiscard]] f64 time_s() const;         ///< frame_number / fps
    /// CLOCK_MONOTONIC, when its source began it.
    [[nodiscard]] u64 born_ns() const;
    /// When what it shows happened, as its source has said; 0: it has not.
    [[nodiscard]] u64 capture_ns() const;
    [[nodiscard]] device::device_kind where() const;
    /// Work on a GPU belongs here: commit() stands behind it.
    [[nodiscard]] device::queue& queue() const;
    [[nodiscard]] void* stream() const;  ///< its cudaStream_t; null where planes are host memory
    /// The run's parameters that it is made with, as open_run::parameters() lays them out; empty: it has
    /// none.
    [[nodiscard]] std::span<const std::byte> parameter_bytes() const;
    [[nodiscard]] u64 parameter_number() const;

protected:
    explicit port_frame(port_seat* of) : seat_(of) {}
    port_seat* seat_;
};

class reader_frame : public port_frame {
public:
    /// A plane of the first input, as in a stage. Throws config_error: none of that name, another type.
    template <typename T>
    [[nodiscard]] plane_view<T> plane(std::string_view name) const {
        return input().plane<T>(name);
    }
    [[nodiscard]] input_payload input(std::size_t index = 0) const;
    /// What the stages have set on it, for reading; of several inputs as at any join (ring/metadata.hpp).
    [[nodiscard]] frame_metadata metadata() const;
    /// For the ledger: a hash of what the frame brought, as frame::set_hash() of a stage. Before commit().
    void set_hash(u64 hash, std::string_view name = "own");
    /// It is read. Throws port_revoked, output_error.
    void commit();

private:
    friend class reader_port;
    explicit reader_frame(port_seat* of) : port_frame(of) {}
    std::string hash_name_;
};

/// Of writer_port::next(): true as long as there is a frame in it.
class writer_frame : public port_frame {
public:
    writer_frame(writer_frame&& other) noexcept
        : port_frame(std::exchange(other.seat_, nullptr)), done_(other.done_) {}
    writer_frame& operator=(writer_frame&&) = delete;
    ~writer_frame();  ///< without commit(): its number is given once more
    [[nodiscard]] explicit operator bool() const noexcept { return seat_ != nullptr; }
    template <typename T>
    [[nodiscard]] plane_view<T> plane(std::string_view name) const {
        return output().plane<T>(name);
    }
    /// Its set_used() says what of a plane is in use.
    [[nodiscard]] output_payload output() const;
    /// For the stages behind: final with commit().
    [[nodiscard]] frame_metadata metadata() const;
    /// CLOCK_MONOTONIC of this machine; 0: not known.
    void set_capture_ns(u64 ns);
    /// It is written: the stages behind it get it. Throws port_revoked.
    void commit();

private:
    friend class writer_port;
    explicit writer_frame(port_seat* of) : port_frame(of) {}
    bool done_ = false;
};

class reader_port {
public:
    reader_port(reader_port&&) noexcept;
    reader_port& operator=(reader_port&&) noexcept;
    ~reader_port();  ///< gives the place back, and a frame in hand to the next life

    /// The next frame; null: none came in so many seconds, or the run is over. Frames that were given up
    /// upstream have no content: they are recorded and passed over. Throws config_error when the last one was
    /// not committed.
    [[nodiscard]] reader_frame* next(f64 timeout_s);
    [[nodiscard]] bool ended()
        const noexcept;  ///< every frame of the run is through here, or the run is gone
    [[nodiscard]] const std::string& stage() const noexcept;
    /// Throws nothing_new, which says who is waited for, as the loop does.
    [[noreturn]] void throw_wait_timeout() const;
    [[nodiscard]] const ring::frame_format& format(std::size_t input = 0) const;
    /// Whose outputs it reads.
    [[nodiscard]] const std::vector<std::string>& inputs() const noexcept;

    /// The loop's: its end is the run's.
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

class writer_port {
public:
    writer_port(writer_port&&) noexcept;
    writer_port& operator=(writer_port&&) noexcept;
    ~writer_port();

    /// The next number's buffer, to be filled. False: the run is over. Throws nothing_new: the ring has had
    /// no room for patience_s.
    [[nodiscard]] writer_frame next();
    /// The same with a time of one's own; false, too, when none was free in so many seconds.
    [[nodiscard]] writer_frame next(f64 timeout_s);
    /// The stream ends before the frame that would be next, or before the one in hand, which is dropped: the
    /// run ends when all frames before it are delivered. Returns when the run has taken it up; whoever dies
    /// before that has said nothing, and the next program goes on. Throws config_error: the file doesn't say
    /// `ends = true` of this port; nothing_new: no supervisor has heard it for patience_s.
    void end();
    [[nodiscard]] bool ended() const noexcept;
    [[nodiscard]] const std::string& stage() const noexcept;
    /// Throws nothing_new, which says who is waited for.
    [[noreturn]] void throw_wait_timeout() const;
    [[nodiscard]] const ring::frame_format& format() const;

private:
    friend class open_run;
    explicit writer_port(owned_ptr<port_seat> s);
    owned_ptr<port_seat> seat_;
};

}  // namespace carousel
