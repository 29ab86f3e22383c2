#pragma once
// Runs stage objects in this process, one behind the other and one frame at a time: no supervisor, no rings,
// one slot per stage. For tests of what a stage makes of its inputs. `carousel chaos FILE` tests how it dies.
//
//   carousel::testing::chain c({.width = 4, .height = 2});
//   c.give("camera", carousel::image_format(4, 2));
//   c.add("negative", std::make_unique<negative>(), R"({"alpha": true})", {"camera"});
//   c.prepare();
//   c.fill<u8>("camera", "color", pixels);
//   c.run(0);
//   c.read<u8>("negative", "color");
//
// Of several outputs "fork" is the first, "fork.square" the one of that name, wherever a ring is named. A
// sampled input (the key `sampled`) is the newest frame of a stage before, or of a stand-in, once newest()
// has told it.
//
// Throws what the stages throw; carousel::error for a wrong name, type or size.

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

struct chain_options {
    device::device_id device = device::device_id();  ///< the CPU
    unsigned cpu_threads = 2;
    u32 width = 320, height = 180;
    std::string runtime_directory = ".", output_directory = ".";
    u32 in_flight = 2;
    u32 epoch = 1;
    f64 fps = 60;
    std::string folder = ".";  ///< of the pipeline file
};

class chain {
public:
    explicit chain(chain_options options);
    ~chain();
    chain(const chain&) = delete;
    chain& operator=(const chain&) = delete;

    /// Configures a stage on what the named ones write, `sampled` being its sampled inputs; refuses settings
    /// that it didn't read, parameters that make no sense, and sampled inputs of a stage that takes none.
    /// Throws what configure() throws.
    description& add(const std::string& name, std::unique_ptr<stage> object,
                     const std::string& settings_json = "{}", const std::vector<std::string>& inputs = {},
                     const std::vector<std::string>& sampled = {});
    /// A stand-in for a stage that writes `format`: the test itself fills its planes.
    void provide(const std::string& name, frame_format format) {
        provide(name, std::vector<output_description>{std::move(format)});
    }
    /// The same for one with several outputs.
    void provide(const std::string& name, std::vector<output_description> outputs);
    /// Makes memory and assets, prepares all stages. Once, after the last add() and provide(): add(),
    /// provide() and a second prepare() after it throw config_error, and so does what moves or reads frames
    /// before it.
    void prepare();

    /// Puts `elements` into a plane of a stand-in. Throws config_error: another type, or not as many as the
    /// plane has.
    template <typename T>
    void fill(const std::string& name, std::string_view plane, std::span<const T> elements) {
        write_plane(name, plane, element_of<T>::value, std::as_bytes(elements));
    }
    template <typename T>
    void fill(const std::string& name, std::string_view plane, const std::vector<T>& elements) {
        fill(name, plane, std::span<const T>(elements));
    }

    /// From now on frame `frame_number` of a stand-in is the newest one, with all that was put into it: for
    /// the stages that have it as a sampled input. Until the first call they have none of it.
    void newest(const std::string& name, u64 frame_number);

    /// One frame through all stages, finished and committed. Without values the parameters are those of the
    /// schema's start.
    void run(u64 frame_number) { run_with(frame_number, {}); }
    template <frame_parameters T>
    void run(u64 frame_number, const T& values) {
        run_with(frame_number, std::as_bytes(std::span(&values, 1)));
    }
    /// Frames `first` to `first + frames - 1` in flight at once, as in a run: of each stage process() of all
    /// of them, then finish() of each. A stage that passes something from process() to finish() in a member
    /// instead of frame::local() or memory of the frame's lane mixes them up; compare hash() with that of
    /// run(). `frames` is at most the option in_flight. fill(frame_number) is called before for each frame,
    /// to fill the stand-ins. read() then has the first one.
    void run_in_flight(u64 first, u32 frames, const std::function<void(u64 frame_number)>& fill = {});
    /// What finish() of a stage has last given to frame::set_hash() for that frame; none: nothing.
    [[nodiscard]] std::optional<u64> hash(const std::string& name, u64 frame_number);
    /// The frame as a tombstone: the sinks' ledgers record it, and finish() of those with
    /// description::wants_tombstones gets it.
    void run_tombstone(u64 frame_number, const std::string& reason);
    /// Has process() of a source said that the stream ends, at the last run()?
    [[nodiscard]] bool has_ended() const noexcept { return ended_; }

    /// What a stage's last frame carries, or what the next one of a stand-in is to carry.
    [[nodiscard]] frame_metadata metadata(const std::string& name);
    [[nodiscard]] u64 capture_ns(const std::string& name);
    /// What of a stand-in's plane is in use, from now on.
    void set_used(const std::string& name, std::string_view plane, std::initializer_list<u64> elements);

    /// What a stage wrote last into a plane, element by element, up to the last one that its frame uses.
    /// Throws config_error for another type.
    template <typename T>
    [[nodiscard]] std::vector<T> read(const std::string& name, std::string_view plane) {
        const std::vector<std::byte> bytes = read_plane(name, plane, element_of<T>::value);
        std::vector<T> out(bytes.size() / sizeof(T));
        std::memcpy(out.data(), bytes.data(), bytes.size());
        return out;
    }
    /// The bytes of plane `index`.
    [[nodiscard]] std::vector<std::byte> read_bytes(const std::string& name, std::size_t index = 0);
    /// The bytes of an asset.
    [[nodiscard]] std::vector<std::byte> read_asset(const std::string& name);

    bool owned = true;  ///< frame::is_owned() of its frames

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

    chain_options options_;
    std::unique_ptr<world> world_;
    std::vector<std::unique_ptr<seat>> seats_;
    std::size_t place_ = 0;  ///< of the frame that counts now, among those in flight
    bool ended_ = false, prepared_ = false;
};

}  // namespace carousel::testing
