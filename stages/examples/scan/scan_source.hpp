#pragma once
// A source with its own frame format; it simulates a spinning lidar in a room. A real source would read
// record number f.frame_number() of a file here: the content of a frame must depend only on its number, its
// parameters and the settings, because the frame is made again after a crash. Settings: points, the number
// per frame [1024].

#include <carousel/cpu.hpp>
#include <carousel/stage.hpp>
#include <cmath>
#include <numbers>

#include "scan.hpp"

class scan_source : public carousel::stage {
public:
    carousel::description configure(const carousel::configuration& with) override {
        carousel::require_no_inputs(with);
        points_ = static_cast<carousel::u64>(with.settings->integer("points", 1024, 1, 1'000'000));
        return {.outputs = {scan_format(points_)},
                .parameters = scan_parameters::schema(),
                .device = carousel::runs_on::cpu};
    }

    void process(carousel::frame& f) override {
        using namespace carousel;
        const auto points = f.output().plane<f32>("points");
        const auto intensity = f.output().plane<u16>("intensity");
        const f64 range = f.parameters<scan_parameters>().range,
                  turned = static_cast<f64>(f.frame_number() % 360) / 360;
        cpu::for_each(f, points_, 256, [=, count = static_cast<f64>(points_)](u64 k) {
            const f64 part = static_cast<f64>(k) / count, angle = 2 * std::numbers::pi * (part + turned);
            const f64 distance = range * (0.75 + 0.25 * std::cos(5 * angle));
            points(k, 0) = static_cast<f32>(distance * std::cos(angle));
            points(k, 1) = static_cast<f32>(distance * std::sin(angle));
            points(k, 2) = static_cast<f32>(part);
            intensity(k) = static_cast<u16>(65535 / (1 + distance));
        });
    }

private:
    carousel::u64 points_ = 0;
};
