#include "grayscale.hpp"

int main(int argc, char** argv) { return carousel::stage_main<grayscale_stage>(argc, argv); }
