// Passes samples from any process to any other one: queue push NUMBER | queue pop NUMBER
#include <carousel/ipc.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

struct sample {
    unsigned long long number;
    double value;
};

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const bool push = std::string(argv[1]) == "push";
    const unsigned long long number = std::strtoull(argv[2], nullptr, 10);
    try {
        auto lab = carousel::ipc::open("lab");
        auto samples = lab.queue<sample>("samples", 256);
        double sum = 0;
        for (unsigned long long k = 0; k < number; ++k) {
            if (push) {
                samples.push({k, static_cast<double>(k) / 2}, std::chrono::seconds(10));
                continue;
            }
            auto leased = samples.lease(std::chrono::seconds(10));  // the sample is delivered again if this
                                                                    // process dies before commit()
            sum += leased.value().value;
            leased.commit();
        }
        std::printf("%llu samples, sum %.1f\n", number, sum);
        return 0;
    } catch (const carousel::error& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return e.code();
    }
}
