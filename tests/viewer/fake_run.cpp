#include "tests/viewer/fake_run.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/json.hpp"
#include "device/cpu/memfd.hpp"
#include "frame/frame_format.hpp"
#include "ring/parameter_box.hpp"
#include "shm/process_id.hpp"
#include "telemetry/histogram.hpp"
#include "telemetry/snapshot.hpp"

namespace carousel::test {
namespace {
using nlohmann::json;
std::atomic<u32> made{0};

ring::frame_format picture_format(u32 width, u32 height) {
    ring::frame_format f{"carousel.image.rgba8", {{"color", ring::element::u8_, {height, width, 4}}}, {}};
    (void)f.lay_out();
    return f;
}
}  // namespace

fake_run::fake_run(fake_options options) : options_(std::move(options)) {
    run_id_ = fmt::format("fake-{}-{}", ::getpid(), made.fetch_add(1));
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");
    CAROUSEL_ASSERT(runtime != nullptr);
    folder_ = fmt::format("{}/carousel/{}", runtime, options_.name);
    std::filesystem::create_directories(folder_);
    make_block();
    const shm::link_block& pictures = segment_->block().link[2];
    memory_ = device::create_memfd("fake-ring", pictures.slot_bytes * pictures.slots);
    memory_fd_ = shm::unique_fd(memory_.fd);
    context_ = device::open({}, 1);
    ring_ = context_->map(memory_, device::access::write);
    listener_ = shm::listen_at(folder_ + "/control.sock");
    write_record(options_.supervisor > 0 ? options_.supervisor : ::getpid());
    frames_thread_ = std::thread([this] { run_frames(); });
    serve_thread_ = std::thread([this] { serve(); });
}

void fake_run::make_block() {
    segment_ = std::make_unique<shm::segment>(shm::segment::create(run_id_));
    shm::control_block& c = segment_->block();
    ring::plan p = demo_plan(options_.width, options_.height);
    p.pipeline = options_.name;
    rig_ = std::make_unique<rig>(p, &c);
    c.supervisor.store(static_cast<u64>(::getpid()));
    c.supervisor_heartbeat_ns.store(now_ns());
    rig_->work = [this](u32 seat, const ring::job& j) { paint(seat, j); };
    rig_->sit_all();
    if (options_.schema) ring::initialise_parameters(c.parameters, options_.schema.initial_values(), 0);
    back_at_.assign(c.seats, 0);
    segment_->publish();
}

void fake_run::write_record(i32 supervisor) {
    const std::string text = json{
        {"pid", supervisor},
        {"start_time", shm::start_time_of(supervisor)},
        {"run_id", run_id_},
        {"name", options_.name},
        {"file", "demo.toml"}}.dump();
    std::ofstream(folder_ + "/run.json.tmp") << text;
    std::filesystem::rename(folder_ + "/run.json.tmp", folder_ + "/run.json");
}

void fake_run::adopt(i32 supervisor) { write_record(supervisor); }

void fake_run::rebuild() {
    const std::lock_guard lock(mutex_);
    shm::segment::remove(run_id_);
    // stays mapped here as well: an observer of the old one finds it unchanged
    old_segment_ = std::move(segment_);
    make_block();
}

void fake_run::end_with(int exit_code) {
    telemetry::note_end(segment_->block(), exit_code);
    end();
}

fake_run::~fake_run() {
    stop_ = true;
    frames_thread_.join();
    serve_thread_.join();
    end();
    shm::segment::remove(run_id_);
}

void fake_run::end() {
    std::error_code failed;
    std::filesystem::remove_all(folder_, failed);
}

void fake_run::kill(u32 seat) {
    const std::lock_guard lock(mutex_);
    if (!rig_->sits(seat)) return;
    (void)rig_->begin(seat);  // dies with a frame in work
    rig_->die(seat);
    back_at_[seat] = now_ns() + static_cast<u64>(options_.back_after_s * 1e9);
}

u32 fake_run::epoch_in(u32 seat) const {
    return ring::seat_word::of(ring::load(segment_->block().seat[seat].current)).epoch;
}

u32 fake_run::epoch_of(u32 seat) {
    const std::lock_guard lock(mutex_);
    return epoch_in(seat);
}

std::vector<std::string> fake_run::commands() {
    const std::lock_guard lock(mutex_);
    return commands_;
}

u32 fake_run::color_of(u64 frame_number, u32 x, u32 y, u32 width, u32 height) noexcept {
    const u32 bar = static_cast<u32>(frame_number * 3 % width);
    if (x >= bar && x < bar + 12) return 0xFFFFFFFFU;
    const u32 r = x * 255 / width, g = y * 255 / height, b = 160;
    return 0xFF000000U | b << 16U | g << 8U | r;
}

void fake_run::paint(u32 seat, const ring::job& j) {
    if (seat != 2 || !j.output[0]) return;
    const shm::control_block& c = segment_->block();
    std::byte* at = ring_->data() + j.output[0].index * c.link[2].slot_bytes;
    auto* pixels = reinterpret_cast<u32*>(at + 256);
    for (u32 y = 0; y < options_.height; ++y)
        for (u32 x = 0; x < options_.width; ++x)
            pixels[y * options_.width + x] = color_of(j.ring_sequence, x, y, options_.width, options_.height);
    const device::status_word ready{j.ring_sequence, c.frames[2].header[j.output[0].index].epoch,
                                    static_cast<u32>(device::status_state::ready)};
    std::memcpy(at, &ready, sizeof ready);
}

void fake_run::count(u32 seat, const ring::job&) {
    shm::stage_counters& k = segment_->block().stage[seat].counters;
    static constexpr u64 cost_us[] = {300, 1800, 7200, 1100};
    const u64 spread = frames_.load() * 2654435761U % 1000;
    const u64 ns = cost_us[seat % 4] * (800 + spread);
    telemetry::add_sample(k.latency, ns);
    telemetry::add_sample(k.handover, 20'000 + spread * 10);
    k.frames.fetch_add(1);
    k.busy_ns.fetch_add(ns);
    k.wait_input_ns.fetch_add(seat == 0 ? 0 : 3'000'000);
    k.wait_output_ns.fetch_add(seat == 0 ? 9'000'000 : 0);
    if (seat == 3) telemetry::add_sample(k.end_to_end, ns * 9);
}

void fake_run::revive(u64 now) {
    for (u32 k = 0; k < back_at_.size(); ++k) {
        if (back_at_[k] == 0 || now < back_at_[k]) continue;
        back_at_[k] = 0;
        rig_->retire(k);
        rig_->sit(k);
    }
}

void fake_run::run_frames() {
    u64 next = now_ns();
    while (!stop_) {
        next += static_cast<u64>(1e9 / options_.fps);
        {
            const std::lock_guard lock(mutex_);
            const u64 now = now_ns();
            shm::control_block& c = segment_->block();
            c.supervisor_heartbeat_ns.store(now);
            revive(now);
            // the last first: each frame stays a turn in each ring
            for (u32 k = static_cast<u32>(back_at_.size()); k-- > 0;) {
                if (!rig_->sits(k) || paused_.count(k) != 0) continue;
                shm::incarnation& e = c.entry[rig_->entry_of(k)];
                e.heartbeat_ns.store(now);
                e.cpu_ns.fetch_add(3'000'000);
                if (!rig_->pass(k)) continue;
                count(k, {});
                if (k == 3) frames_.fetch_add(1);
            }
        }
        const u64 now = now_ns();
        if (next > now) std::this_thread::sleep_for(std::chrono::nanoseconds(next - now));
    }
}

void fake_run::serve() {
    std::vector<shm::unique_fd> clients;
    while (!stop_) {
        std::vector<pollfd> watched{{listener_.get(), POLLIN, 0}};
        for (const shm::unique_fd& c : clients) watched.push_back({c.get(), POLLIN, 0});
        if (::poll(watched.data(), watched.size(), 50) <= 0) continue;
        for (std::size_t k = clients.size(); k-- > 0;) {
            if (watched[k + 1].revents == 0) continue;
            shm::message m;
            if (shm::receive_message(clients[k].get(), m) == shm::receive_status::ok)
                answer(clients[k].get(), m.text);
            else
                clients.erase(clients.begin() + static_cast<std::ptrdiff_t>(k));
        }
        if (watched[0].revents != 0)
            clients.emplace_back(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    }
}

void fake_run::answer(int fd, const std::string& text) {
    const json request = json::parse(text);
    if (request.value("run_id", run_id_) != run_id_) {
        (void)shm::send_message(fd, json{{"ok", false}, {"message", "another run"}, {"code", 2}}.dump());
        return;
    }
    if (request.at("type") == "tap") {
        const json reply{
            {"ok", true},
            {"run_id", run_id_},
            {"link", 2},
            {"stage", "fragment"},
            {"entry", shm::max_incarnations},
            {"format", json::parse(picture_format(options_.width, options_.height).to_json())},
            {"memory", {{"kind", "memfd"}, {"bytes", memory_.bytes}, {"uuid", ""}, {"fd", 0}, {"ipc", ""}}},
            {"device", {{"kind", "cpu"}, {"uuid", ""}, {"ordinal", 0}}}};
        (void)shm::send_message(fd, reply.dump(), {memory_fd_.get()});
        return;
    }
    const std::string type = request.at("type"),
                      verb = type == "seat" ? request.at("order") : request.at("type");
    const json reply = verb == "ps"           ? answer_ps()
                       : verb == "parameters" ? answer_parameters()
                       : verb == "set"        ? answer_set(request)
                                              : answer_command(verb, request.value("stage", ""));
    (void)shm::send_message(fd, reply.dump());
}

json fake_run::answer_ps() {
    const std::lock_guard lock(mutex_);
    json stages = json::array();
    const char* names[] = {"geometry", "vertex", "fragment", "display"};
    for (u32 k = 0; k < 4; ++k)
        stages.push_back({{"name", names[k]},
                          {"instance", 0},
                          {"state", rig_->sits(k) ? "running" : "starting"},
                          {"restarts", epoch_in(k) - 1},
                          {"last_exit", epoch_in(k) > 1 ? json("signal 9 (SIGKILL)") : json()},
                          {"cpu_percent", 18.0},
                          {"memory_bytes", 48'000'000 + k * 7'000'000}});
    return {{"ok", true}, {"message", "ps : done"}, {"stages", stages}};
}

json fake_run::answer_command(const std::string& verb, const std::string& stage) {
    const std::vector<std::string> names{"geometry", "vertex", "fragment", "display"};
    const auto at = std::find(names.begin(), names.end(), stage);
    const u32 seat = static_cast<u32>(at - names.begin());
    {
        const std::lock_guard lock(mutex_);
        commands_.push_back(verb + " " + stage);
        if (seat < 4 && verb == "stop") paused_.insert(seat);
        if (seat < 4 && verb == "cont") paused_.erase(seat);
        if (seat < 4 && (verb == "stop" || verb == "cont"))
            segment_->block().seat[seat].paused.store(verb == "stop" ? 1 : 0);
    }
    if (seat < 4 && (verb == "kill" || verb == "restart")) kill(seat);
    return {{"ok", true}, {"message", verb + " " + stage + ": done"}};
}

}  // namespace carousel::test
