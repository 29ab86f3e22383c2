// The stages after the G-buffer on the CPU: rows are distributed over all threads.
#include <string_view>

#include "device/cpu/pool.hpp"
#include "kernels/cpu/shade_entries.hpp"

namespace carousel::kernels::cpu {

namespace baseline {
extern const shade_entries looks;
}
#if defined(CAROUSEL_X86_VARIANTS)
namespace avx2 {
extern const shade_entries looks;
}
namespace avx512 {
extern const shade_entries looks;
}
#endif

const shade_entries& shade_entries_of(const entries& same) {
#if defined(CAROUSEL_X86_VARIANTS)
    if (std::string_view(same.name) == "avx512") return avx512::looks;
    if (std::string_view(same.name) == "avx2") return avx2::looks;
#endif
    (void)same;
    return baseline::looks;
}

namespace {

constexpr body::srgb_tables light_tables = body::make_srgb_tables();

template <typename Pass>
void each_row(device::cpu::pool& pool, u32 rows, void (*loop)(const Pass&, u32, u32), const Pass& pass) {
    pool.parallel_for(rows, 4, [&](u64 begin, u64 end, unsigned) {
        loop(pass, static_cast<u32>(begin), static_cast<u32>(end));
    });
}

}  // namespace

void run_light(device::cpu::pool& pool, const light_args& args, const entries& use) {
    const shade_entries& loops = shade_entries_of(use);
    const body::light_pass pass = body::make_light_pass(args, &light_tables);
    if (args.occlusion_radius > 0.0F) each_row(pool, args.height, loops.occlusion_rows, pass);
    each_row(pool, args.height, loops.light_rows, pass);
}

void run_post(device::cpu::pool& pool, const post_args& args, const entries& use) {
    const shade_entries& loops = shade_entries_of(use);
    const body::post_plan plan = body::make_post_plan(args, &light_tables);
    if (args.meter.before != nullptr) {
        each_row(pool, args.height, loops.meter_rows, plan.meter);
        i64 sum = 0;
        for (u32 y = 0; y < args.height; ++y) sum += plan.meter.rows[y];
        body::meter_exposure(plan.meter, sum);
    }
    if (args.bloom > 0.0F) {
        for (const body::bloom_down_pass& down : plan.down)
            each_row(pool, down.to.height, loops.bloom_down_rows, down);
        for (const body::bloom_up_pass& up : plan.up) each_row(pool, up.to.height, loops.bloom_up_rows, up);
    }
    each_row(pool, args.height, loops.tone_rows, plan.tone);
    if (args.smooth_edges) each_row(pool, args.height, loops.smooth_rows, plan.smooth);
}

void run_taa(device::cpu::pool& pool, const taa_args& args, const entries& use) {
    each_row(pool, args.height, shade_entries_of(use).taa_rows, body::make_taa_pass(args));
}

void run_compare(device::cpu::pool& pool, const compare_args& args, const entries& use) {
    const shade_entries& loops = shade_entries_of(use);
    const body::compare_pass pass = body::make_compare_pass(args);
    pool.parallel_for(args.height, 16, [&](u64 begin, u64 end, unsigned) {
        loops.compare_rows(pass, args.rows, static_cast<u32>(begin), static_cast<u32>(end));
    });
}

void light(device::queue& q, const light_args& args) {
    q.submit([args](device::cpu::pool& pool) { run_light(pool, args, best_entries()); });
}
void post(device::queue& q, const post_args& args) {
    q.submit([args](device::cpu::pool& pool) { run_post(pool, args, best_entries()); });
}
void taa(device::queue& q, const taa_args& args) {
    q.submit([args](device::cpu::pool& pool) { run_taa(pool, args, best_entries()); });
}
void compare(device::queue& q, const compare_args& args) {
    q.submit([args](device::cpu::pool& pool) { run_compare(pool, args, best_entries()); });
}

}  // namespace carousel::kernels::cpu
