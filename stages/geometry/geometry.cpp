#include "stages/geometry/geometry.hpp"

namespace carousel::stages {

description geometry::configure(const configuration& with) {
    require_no_inputs(with);
    mesh_ = mesh_source::from(*with.settings);
    instances_ = static_cast<u32>(with.settings->integer("copies", 1, 1, 1'000'000));
    stand_ = with.settings->choice("arrangement", "grid", {"grid", "field"}) == "field"
                 ? kernels::arrangement::field
                 : kernels::arrangement::grid;
    spacing_ = static_cast<f32>(with.settings->number("spacing", 2.4, 0.0, 1000.0));
    require_limits(with, {mesh_.layout(), instances_, mesh_.view()});
    std::vector<asset_description> assets{{mesh_asset, mesh_.layout().bytes}};
    if (mesh_.motion().moves()) assets.push_back({motion_asset, mesh_.motion().bytes});
    return {.outputs = {scene_format(mesh_.layout().counts, instances_, mesh_.view(), mesh_.motion().counts)},
            .makes = std::move(assets),
            .parameters = scene_parameters::schema(mesh_.view()),
            .same_work = true,
            .bit_equal = true};
}

void geometry::load_asset(std::string_view name, std::span<std::byte> memory, environment& env) {
    if (name == motion_asset) {
        mesh_.fill_motion(memory, env.context(), env.queue());
    } else {
        mesh_.fill(memory, env.context(), env.queue());
    }
}

void geometry::prepare(environment& env) {
    if (!mesh_.motion().moves()) return;
    motion_ = env.asset(motion_asset).data();
    scratch_ = env.context().allocate(kernels::pose_scratch_bytes(mesh_.motion().counts));
}

void geometry::process(frame& f) {
    kernels::animate_args args;
    args.frame_number = f.frame_number();
    args.scene = scene_of(f);
    args.instance_count = instances_;
    args.spacing = spacing_;
    args.draw = f.output().records<kernels::draw_record>("draw");
    args.models = f.output().plane<f32>("models").data();
    args.stand = stand_;
    kernels::animate_instances(f.queue(), args);
    if (motion_ != nullptr)
        kernels::compute_pose(f.queue(), {mesh_.motion(), motion_, mesh_.clip_time(f.time_s()),
                                          pose_in(f.output()), scratch_->data()});
}

}  // namespace carousel::stages
