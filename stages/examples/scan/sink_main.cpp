#include "scan_sink.hpp"

int main(int argc, char** argv) { return carousel::stage_main<scan_sink>(argc, argv); }
