#pragma once
// Runs stage objects in this process, one behind the other and one frame at a time: no supervisor, no rings, one slot a stage.
// For what a stage makes of its inputs; how frames travel is tested elsewhere.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/backend.hpp"
#include "kernels/scene.hpp"
#include "stages/sdk/stage.hpp"

namespace carousel::test {

struct chain_options {
    device::device_id device = device::device_id();
    unsigned cpu_threads = 2;
    u32 width = 320, height = 180;
    std::string run_directory = ".";
    u32 in_flight = 2;
    u32 epoch = 1;
};

class chain {
public:
    bool ours = true;  ///< frame::is_ours() of its frames
    explicit chain(chain_options options);
    ~chain();

    /// Configures a stage on what the named ones write; refuses settings that it didn't read. Throws what configure() throws.
    stages::description& add(const std::string& name, std::unique_ptr<stages::stage> stage, const std::string& settings_json = "{}",
                             const std::vector<std::string>& inputs = {});
    /// Makes memory and assets, prepares all stages. After the last add().
    void prepare();
    /// One frame through all stages, finished and committed.
    void run(u64 sequence, const kernels::scene_state& scene = {});  ///< its parameters
    /// The last frame as a void one: only finish() of the sinks.
    void run_void(u64 sequence, const std::string& reason);
    /// Plane `index` of what a stage wrote last.
    [[nodiscard]] std::vector<std::byte> read(const std::string& name, std::size_t plane = 0);
    /// The bytes of an asset.
    [[nodiscard]] std::vector<std::byte> read_asset(const std::string& name);

private:
    struct seat;
    struct world;
    class frame_in_hand;
    [[nodiscard]] seat& find(const std::string& name);
    [[nodiscard]] std::vector<std::byte> fetch(const std::byte* from, u64 bytes);

    chain_options options_;
    std::unique_ptr<world> world_;
    std::vector<std::unique_ptr<seat>> seats_;
};

}  // namespace carousel::test
