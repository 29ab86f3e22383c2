#pragma once
// Runs stage objects in this process, one after another and one frame at a time: no supervisor, no rings, one
// slot per stage. For tests of the results that a stage computes from its inputs; `carousel chaos FILE` tests
// its crash recovery.
//
//   carousel::testing::chain c({.width = 4, .height = 2});
//   c.provide("camera", carousel::image_format(4, 2));
//   c.add("negative", std::make_unique<negative>(), R"({"alpha": true})", {"camera"});
//   c.prepare();
//   c.fill<u8>("camera", "color", pixels);
//   c.run(0);
//   c.read<u8>("negative", "color");
//
// In all functions that take the name of a ring, "fork" means the first output of the stage fork, and
// "fork.square" means its output named square; "fork.state" means its state (description::state) after the
// last frame. A sampled input (the key `sampled`) is the newest frame of an
// earlier stage, or of a stand-in for which newest() has been called.
//
// Throws the exceptions of the stages; carousel::error for a wrong name, type or size.

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <carousel/stage.hpp>

namespace carousel::testing {

/// Options of a chain: the values that a run takes from the pipeline file and the command line.
struct chain_options {
    device::device_id device = device::device_id();  ///< default: the CPU
    unsigned cpu_threads = 2;
    u32 width = 320, height = 180;
    std::string runtime_directory = ".", output_directory = ".";
    u32 in_flight = 2;
    u32 epoch = 1;
    f64 fps = 60;
    std::string folder = ".";  ///< the pipeline file's folder
};

/// The stages under test, in the order of add(). One thread.
class chain {
public:
    explicit chain(chain_options options);
    ~chain();
    chain(const chain&) = delete;
    chain& operator=(const chain&) = delete;

    /// Configures a stage whose inputs are the outputs named in `inputs` and whose sampled inputs are those
    /// named in `sampled`. Returns its description. Throws the exceptions of configure(); also refuses
    /// settings that configure() did not read, invalid parameters, and sampled inputs of a stage that accepts
    /// none.
    description& add(const std::string& name, std::unique_ptr<stage> object,
                     const std::string& settings_json = "{}", const std::vector<std::string>& inputs = {},
                     const std::vector<std::string>& sampled = {});
    /// Adds a stand-in for a stage that writes `format`: the test itself fills its planes.
    void provide(const std::string& name, frame_format format) {
        provide(name, std::vector<output_description>{std::move(format)});
    }
    /// Adds a stand-in with several outputs.
    void provide(const std::string& name, std::vector<output_description> outputs);
    /// Allocates memory and assets and prepares all stages. Call it once, after the last add() and provide():
    /// add(), provide() and prepare() throw config_error if they are called after it; functions that run or
    /// read frames throw config_error if they are called before it.
    void prepare();

    /// Copies `elements` into a plane of a stand-in. Throws config_error if the type differs or the number of
    /// elements is not that of the plane.
    template <typename T>
    void fill(const std::string& name, std::string_view plane, std::span<const T> elements) {
        write_plane(name, plane, element_of<T>::value, std::as_bytes(elements));
    }
    template <typename T>
    void fill(const std::string& name, std::string_view plane, const std::vector<T>& elements) {
        fill(name, plane, std::span<const T>(elements));
    }

    /// From now on, stages that have the stand-in as a sampled input get frame `frame_number`, with the
    /// stand-in's current contents, as the newest frame of that input. Before the first call of this
    /// function that sampled input is empty.
    void newest(const std::string& name, u64 frame_number);

    /// Runs one frame through all stages, including finish() and commit. If no values are passed, the frame
    /// has the schema's initial parameters.
    void run(u64 frame_number) { run_with(frame_number, {}); }
    template <frame_parameters T>
    void run(u64 frame_number, const T& values) {
        run_with(frame_number, std::as_bytes(std::span(&values, 1)));
    }
    /// Runs frames `first` to `first + frames - 1` in flight at the same time, as in a run: for each stage,
    /// process() of all these frames and then finish() of each. The test finds a stage that passes data from
    /// process() to finish() in a member, instead of in frame::local() or in memory of the frame's lane. Such
    /// a stage mixes up the frames, so its hash() may differ from its hash() after run(). `frames` is at most
    /// the option in_flight. fill(frame_number) is called before each frame to fill the stand-ins. Afterwards
    /// read() returns the planes of the first frame.
    void run_in_flight(u64 first, u32 frames, const std::function<void(u64 frame_number)>& fill = {});
    /// Replaces the object of a stage, as a run does when its process is killed: what the old object
    /// remembers is lost, and the states that description::state declares are kept. The next call of run()
    /// may be for the next frame, or for the last one again, which then has the same previous state. Throws
    /// config_error if the new object describes other outputs or another state.
    void kill_and_restart(const std::string& name, std::unique_ptr<stage> fresh);
    /// Returns the hash that finish() of a stage last passed to frame::set_hash() for that frame, or nullopt.
    [[nodiscard]] std::optional<u64> hash(const std::string& name, u64 frame_number);
    /// Runs the frame as a tombstone: the sinks' ledgers record it, and finish() is called for it in stages
    /// with description::wants_tombstones.
    void run_tombstone(u64 frame_number, const std::string& reason);
    /// True if process() of a source ended the stream (frame::end_stream()) in the last run().
    [[nodiscard]] bool has_ended() const noexcept { return ended_; }

    /// Returns the metadata of a stage's last frame. For a stand-in, returns the metadata of its next frame,
    /// which the test may set.
    [[nodiscard]] frame_metadata metadata(const std::string& name);
    /// Returns the capture time of a stage's last frame in ns; 0: not set.
    [[nodiscard]] u64 capture_ns(const std::string& name);
    /// Sets the used extents of a stand-in's plane, in elements, from now on.
    void set_used(const std::string& name, std::string_view plane, std::initializer_list<u64> elements);

    /// Returns the elements of a plane of a stage's last frame, up to the last element that the frame uses.
    /// Throws config_error if the type differs.
    template <typename T>
    [[nodiscard]] std::vector<T> read(const std::string& name, std::string_view plane) {
        const std::vector<std::byte> bytes = read_plane(name, plane, element_of<T>::value);
        std::vector<T> out(bytes.size() / sizeof(T));
        std::memcpy(out.data(), bytes.data(), bytes.size());
        return out;
    }
    /// Returns the bytes of plane `index`.
    [[nodiscard]] std::vector<std::byte> read_bytes(const std::string& name, std::size_t index = 0);
    /// Returns the bytes of an asset.
    [[nodiscard]] std::vector<std::byte> read_asset(const std::string& name);

    bool owned = true;  ///< the value that frame::is_owned() returns for the frames of the chain

private:
    struct seat;
    struct made_output;
    struct world;
    class chain_frame;
    [[nodiscard]] seat& find(const std::string& name);
    [[nodiscard]] seat& find_provider(const std::string& name, const char* reason);
    [[nodiscard]] made_output find_ring(const std::string& name);
    [[nodiscard]] std::vector<std::byte> fetch(const std::byte* from, u64 bytes);
    [[nodiscard]] std::vector<std::byte> read_plane(const std::string& name, std::string_view plane,
                                                    element type);
    void write_plane(const std::string& name, std::string_view plane, element type,
                     std::span<const std::byte> bytes);
    void run_with(u64 frame_number, std::span<const std::byte> parameters);

    void require(bool prepared, const char* call) const;
    void make_room(std::size_t frames);
    void make_states(seat& s);
    void configure(seat& s);

    chain_options options_;
    std::unique_ptr<world> world_;
    std::vector<std::unique_ptr<seat>> seats_;
    std::size_t place_ = 0;  ///< index of the current frame among those in flight
    bool ended_ = false, prepared_ = false;
};

}  // namespace carousel::testing
