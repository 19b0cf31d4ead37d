import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Kafka's own client with nothing changed: `Client BROKER produce|consume TOPIC COUNT`. */
public class Client {
    public static void main(String[] arguments) throws Exception {
        var properties = new Properties();
        properties.put("bootstrap.servers", arguments[0]);
        for (var part : List.of("key", "value")) {
            properties.put(part + ".serializer", "org.apache.kafka.common.serialization.StringSerializer");
            properties.put(part + ".deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        }
        properties.put("group.id", "readers");
        properties.put("auto.offset.reset", "earliest");
        var topic = arguments[2];
        var count = Integer.parseInt(arguments[3]);
        if (arguments[1].equals("produce")) {
            produce(properties, topic, count);
        } else {
            consume(properties, topic, count);
        }
    }

    private static void produce(Properties properties, String topic, int count) throws Exception {
        try (var producer = new KafkaProducer<String, String>(properties)) {
            for (int number = 0; number < count; number++) {
                producer.send(new ProducerRecord<>(topic, "key-" + number, "value-" + number)).get();
            }
            try {
                producer.send(new ProducerRecord<>(topic, "x".repeat(2000))).get();
                System.out.println("a record larger than a packet was taken");
            } catch (Exception error) {
                System.out.println(error.getCause().getClass().getSimpleName());
            }
        }
    }

    private static void consume(Properties properties, String topic, int count) {
        try (var consumer = new KafkaConsumer<String, String>(properties)) {
            consumer.subscribe(List.of(topic));
            var end = System.nanoTime() + 60_000_000_000L;
            for (int found = 0; found < count && System.nanoTime() < end;) {
                for (var record : consumer.poll(Duration.ofMillis(200))) {
                    System.out.println(record.key() + " " + record.value());
                    found++;
                }
            }
            consumer.commitSync();
            for (var position : consumer.committed(consumer.assignment()).values()) {
                System.out.println("committed " + position.offset());
            }
        }
    }
}
