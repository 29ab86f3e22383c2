#pragma once
// Ports: frames of a run for a program of one's own that no supervisor has started. It opens the run by its
// name, may come at any time, live as often as it likes, and be killed at any instruction.
//
//   auto run = carousel::open("demo");
//   for (auto& f : run.latest("fragment")) look_at(f.plane<const carousel::u8>("color"));
//
// Ports that take part in a run, `reader` and `writer`, stand in port_frames.hpp, which comes with this
// header.
//
// `latest`: the newest frame of a stage's output, for whoever wants to see it. It never holds anybody up: a
// reader that is slow, stopped or dead costs the run nothing. It misses frames, and it never gets a torn one:
// - A frame is delivered as a copy, taken under a lease that lasts as long as the copy. A frame whose lease
//   was revoked meanwhile (it took longer than latest_lease_ms, 250 ms), whose status word or header does not
//   fit or that came without a picture is thrown away and counted: losses().
// - What is delivered is the program's own until it asks for the next frame: it may look as long as it likes.
//   memory() keeps it beyond that.
// - A link has places for 8 viewers, displays and ports. A place is free again when its process ends.
//
// Deaths. Stages may die and be replaced, the supervisor may, and another one take the run over: the port
// goes on, and frame numbers go on growing. Only where the run begins again with new memory they may begin
// again, too. When the run is over the loop ends, and ending() says how.
//
// Where frames are delivered: open_options::device. On a GPU all work on a frame belongs on its stream();
// work on another stream must be complete before the next frame is asked for, which overwrites this one. The
// thread that calls is behind each call of a port on the GPU that it was on in front of it; one that was on
// none is on the frames'.
//
// Every wait has a bound: next(timeout_s) returns null, the loop throws nothing_new, which says who is
// waited for. An open run and its ports belong to one thread at a time. A forked child can't use them: each
// call throws config_error, and destroying its copies does nothing. It does not keep the place of its parent.
// Linking carousel::stage is enough. Errors are carousel::error: config_error for names (no such run, no such
// stage, all places taken), shm_error for a run of another user or of another version of Carousel,
// device_error for devices, cuda_error when the GPU failed.

#include <cstddef>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/errors.hpp"
#include "core/owner_process.hpp"
#include "core/types.hpp"
#include "device/backend.hpp"
#include "ring/parameter_schema.hpp"
#include "stages/sdk/metadata.hpp"
#include "stages/sdk/payload.hpp"
#include "stages/sdk/port_frames.hpp"

namespace carousel {

using device::device_kind;

struct open_options {
    /// Where frames are delivered. "": where the ring's memory lies; "cpu": in host memory, page-locked where
    /// the ring's lies on a GPU; "cuda" or "cuda:1": on that GPU, as this process counts them.
    std::string device = {};
    f64 wait_s = 5;  ///< at opening: for the run, its supervisor and its answers
};

struct latest_options {
    f64 patience_s = 10;  ///< of a loop, for a newer frame
};

/// No newer frame came in time; the text says who is waited for.
class nothing_new : public error {
public:
    explicit nothing_new(const std::string& message) : error(exit_code::stage_failed, message) {}
};

/// Frames that were taken and not delivered.
struct latest_losses {
    u64 revoked = 0;     ///< the lease was: copying took too long
    u64 torn = 0;        ///< the status word did not fit, or the header; never seen in a sound run
    u64 tombstones = 0;  ///< given up upstream: they have no picture
};

/// A whole frame, valid until its port is asked for the next one.
class latest_frame {
public:
    [[nodiscard]] u64 frame_number() const noexcept {
        return frame_number_;
    }  ///< as frame::frame_number() of a stage
    [[nodiscard]] u64 ring_sequence() const noexcept { return ring_sequence_; }
    [[nodiscard]] f64 time_s() const noexcept { return time_s_; }  ///< frame_number / fps
    /// CLOCK_MONOTONIC, when its source began it
    [[nodiscard]] u64 born_ns() const noexcept { return born_ns_; }
    /// When what it shows happened, as its source has said; 0: it has not.
    [[nodiscard]] u64 capture_ns() const noexcept { return capture_ns_; }
    /// What the stages have set on it, for reading.
    [[nodiscard]] frame_metadata metadata() const noexcept { return frame_metadata(metadata_); }
    /// The run's parameters that it was made with, as open_run::parameters() lays them out; empty: it has
    /// none.
    [[nodiscard]] std::span<const std::byte> parameter_bytes() const noexcept { return parameters_; }
    [[nodiscard]] u64 parameter_number() const noexcept { return parameter_number_; }
    [[nodiscard]] const ring::frame_format& format() const noexcept { return planes_.format(); }
    /// The plane of that name, as far as the frame uses it, as in a stage. Throws config_error: no such
    /// plane, or of another element type.
    template <typename T>
    [[nodiscard]] plane_view<T> plane(std::string_view name) const {
        return planes_.plane<T>(name);
    }
    /// All planes: records and bytes, too.
    [[nodiscard]] const input_payload& planes() const noexcept { return planes_; }
    /// Of the memory that the planes lie in.
    [[nodiscard]] device_kind where() const noexcept { return where_; }
    /// What is enqueued here is done before the next frame overwrites this one.
    [[nodiscard]] device::queue& queue() const noexcept { return *queue_; }
    /// The cudaStream_t of that queue; null where the frame lies in host memory.
    [[nodiscard]] void* stream() const noexcept;
    /// The memory that the planes lie in, and their stream. While a copy of this is held they stay as they
    /// are, whatever becomes of the port and the run, and the port delivers the next frame in another block
    /// of memory, as large, which it allocates.
    [[nodiscard]] std::shared_ptr<const void> memory() const noexcept { return memory_; }

private:
    friend class latest_port;
    std::shared_ptr<const device::mapping> memory_;
    u64 frame_number_ = 0, ring_sequence_ = 0, born_ns_ = 0, capture_ns_ = 0;
    f64 time_s_ = 0;
    std::vector<std::byte> metadata_, parameters_;
    u64 parameter_number_ = 0;
    shm::used_extents used_{};
    input_payload planes_;
    device_kind where_ = device_kind::cpu;
    device::queue* queue_ = nullptr;
};

class latest_port {
public:
    latest_port(latest_port&&) noexcept;
    latest_port& operator=(latest_port&&) noexcept;
    ~latest_port();

    /// The newest frame, if it is newer than the last one, or the first that comes in so many seconds. Null:
    /// none came, or the run is over.
    [[nodiscard]] latest_frame* next(f64 timeout_s);
    /// The run is over: no frame will come any more.
    [[nodiscard]] bool ended() const noexcept;
    /// How it ended, once it has: "exit code 0".
    [[nodiscard]] const std::string& ending() const noexcept;
    [[nodiscard]] latest_losses losses() const noexcept;
    /// Why no newer frame comes, as far as the run tells: one clause.
    [[nodiscard]] std::string waits_for() const;
    /// Whose output it is.
    [[nodiscard]] const std::string& stage() const noexcept;
    [[nodiscard]] const ring::frame_format& format() const noexcept;

    /// The loop's: each step is a newer frame, its end is the run's.
    class iterator {
    public:
        [[nodiscard]] latest_frame& operator*() const noexcept { return *at_; }
        iterator& operator++() {
            at_ = of_->next_or_throw();
            return *this;
        }
        [[nodiscard]] bool operator==(std::default_sentinel_t) const noexcept { return at_ == nullptr; }

    private:
        friend class latest_port;
        explicit iterator(latest_port& of) : of_(&of), at_(of.next_or_throw()) {}
        latest_port* of_;
        latest_frame* at_;
    };
    [[nodiscard]] iterator begin() { return iterator(*this); }
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return std::default_sentinel; }

private:
    friend class open_run;
    struct state;
    explicit latest_port(owned_ptr<state> s);
    [[nodiscard]] latest_frame* next_or_throw();
    owned_ptr<state> state_;
};

/// A run that is open. Copies are the same one; ports hold it.
class open_run {
public:
    /// The newest frames of what `stage` puts out; "": of what the last sink reads.
    [[nodiscard]] latest_port latest(const std::string& stage = "", const latest_options& options = {}) const;
    /// Takes the place of the reading port `stage`: a stage of the file with run = "port" and inputs. Waits
    /// wait_s for a place that another program has. Throws config_error, shm_error.
    [[nodiscard]] reader_port reader(const std::string& stage, const port_options& options = {}) const;
    /// The same of a writing port, which has none.
    [[nodiscard]] writer_port writer(const std::string& stage, const port_options& options = {}) const;
    /// The parameters that its frames are made with: names, types and places; none where the pipeline has
    /// none. The supervisor is asked. Throws shm_error: nobody answers in wait_s.
    [[nodiscard]] ring::parameter_schema parameters() const;
    /// Its stages that have an output.
    [[nodiscard]] std::vector<std::string> stages() const;
    [[nodiscard]] const std::string& name() const noexcept;

private:
    friend open_run open(const std::string& name, const open_options& options);
    explicit open_run(std::shared_ptr<class port_attachment> to) : to_(std::move(to)) {}
    std::shared_ptr<class port_attachment> to_;
};

/// The run of that name, of this user; or, where there is a '/' in it, the run whose folder that is.
[[nodiscard]] open_run open(const std::string& name, const open_options& options = {});

}  // namespace carousel
